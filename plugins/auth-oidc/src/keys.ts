import { type Log, within } from '@svc/core'
import type { LocalJWKSet } from 'jose'
import { issuerUnavailable } from './errors.ts'
import { fetchKeys, type IssuerPlace } from './issuer.ts'

/** Milliseconds. */
export interface KeyTimes {
  /** That fetched keys count; then they are fetched again. */
  readonly fresh: number
  /** That they still count while the issuer cannot be reached. */
  readonly stale: number
  /** Between two fetches that an unknown key asks for: strangers can name any. */
  readonly cooldown: number
  /** After a failed fetch until the next. */
  readonly pause: number
}
export const KEY_TIMES: KeyTimes = { fresh: 600_000, stale: 3_600_000, cooldown: 30_000, pause: 5_000 }

/** A caller's share of a fetch, which has limits of its own. */
const WAIT_MS = 15_000

export interface KeysParts {
  readonly place: IssuerPlace
  readonly times: KeyTimes
  readonly log: Log
  /** Ends every fetch. */
  readonly signal: AbortSignal
}

/** The issuer's keys, fetched by one flight however many ask. */
export interface Keys {
  /** Throws UNAVAILABLE. */
  current(signal: AbortSignal): Promise<LocalJWKSet>
  /** Keys younger than these, which lack one; `undefined` when it is too soon to ask again. */
  after(known: LocalJWKSet, signal: AbortSignal): Promise<LocalJWKSet | undefined>
}

export function createKeys({ place, times, log, signal: ending }: KeysParts): Keys {
  let held: { readonly set: LocalJWKSet; readonly at: number } | undefined
  let failed: { readonly error: unknown; readonly at: number } | undefined
  let flight: Promise<LocalJWKSet> | undefined

  const age = (one: { readonly at: number }) => performance.now() - one.at
  const fetchNow = async () => {
    try {
      const set = await fetchKeys(place, ending)
      held = { set, at: performance.now() }
      failed = undefined
      return set
    } catch (error) {
      failed = { error, at: performance.now() }
      if (!ending.aborted) log.warn({ err: error, issuer: place.issuer }, 'the keys of the issuer could not be fetched')
      throw error
    } finally {
      flight = undefined
    }
  }
  const fetched = async (signal: AbortSignal): Promise<LocalJWKSet> => {
    if (failed && age(failed) < times.pause) throw issuerUnavailable(failed.error, times.pause)
    flight ??= fetchNow()
    const shared = flight
    try {
      return await within(WAIT_MS, () => shared, { signal })
    } catch (error) {
      throw signal.aborted ? signal.reason : issuerUnavailable(error, times.pause)
    }
  }
  return {
    async current(signal) {
      signal.throwIfAborted()
      if (held && age(held) < times.fresh) return held.set
      try {
        return await fetched(signal)
      } catch (error) {
        if (held && age(held) < times.stale && !signal.aborted) return held.set
        throw error
      }
    },
    async after(known, signal) {
      if (held && held.set !== known) return held.set
      return held && age(held) < times.cooldown ? undefined : fetched(signal)
    },
  }
}
