import { defineService, type CallContext } from '@svc/core'

/**
 * A counting window: it starts with the first hit and ends after `ms`. Windows are identified by their position in the list (1
 * to 16). A window keeps its hits when its length or limit changes between calls.
 */
export interface CountWindow {
  /** Milliseconds. */
  readonly ms: number
  /** Maximum number of hits. With 0, a call counts nothing and returns the state. */
  readonly limit: number
}
/** State of a window after a counted or rejected hit. */
export interface CountState {
  readonly count: number
  /** Unix time in milliseconds at which it ends, by the clock of the service. */
  readonly endsAt: number
  /** Milliseconds until it ends, by the same clock: right even if the clock of the caller differs. */
  readonly leftMs: number
}
/** `counted` is false when a window was full; then no window has counted the hit. */
export interface Counted {
  readonly counted: boolean
  /** In the order of the requested windows. */
  readonly windows: readonly CountState[]
}

/**
 * Counts hits in windows of time, for limits: exactly, over all processes that share the service. Every store provides it; a
 * plugin whose only service it is takes its place. Errors: STORE_INVALID, STORE_UNAVAILABLE (`details.retryable`), STORE_UNSURE (the
 * hit may have been counted: do not repeat the call).
 */
export interface Counts {
  /**
   * Counts one hit under `key` (as keys of the store) in all windows, or in none if one is full. Counts survive restarts, but a
   * power failure can lose the last hits, because no fsync is needed. With more than a million windows, the oldest can be dropped.
   */
  count(key: string, windows: readonly CountWindow[], ctx: CallContext): Promise<Counted>
}

export const Counts = defineService<Counts>('counts', { api: 1, methods: { count: 'call' } })

/** The counts of the store, also where another plugin provides `Counts`: it can count here while its own server cannot be reached. */
export const StoreCounts = defineService<Counts>('store_counts', { api: 1, methods: { count: 'call' } })
