import { setTimeout as sleep } from 'node:timers/promises'
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
  /** Between two fetches that unknown keys ask for: strangers can name any. Whoever comes meanwhile waits for the next. */
  readonly cooldown: number
  /** After a failed fetch until the next. */
  readonly pause: number
}
export const KEY_TIMES: KeyTimes = { fresh: 600_000, stale: 3_600_000, cooldown: 5_000, pause: 5_000 }

/** A caller's share of the cooldown and a fetch, which has limits of its own. */
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
  /** Keys younger than these, which lack one: the issuer may have a new one since. Throws UNAVAILABLE. */
  after(known: LocalJWKSet, signal: AbortSignal): Promise<LocalJWKSet>
}

export function createKeys({ place, times, log, signal: ending }: KeysParts): Keys {
  let held: { readonly set: LocalJWKSet; readonly at: number } | undefined
  let failed: { readonly error: unknown; readonly at: number } | undefined
  let flight: Promise<LocalJWKSet> | undefined
  let turn: Promise<LocalJWKSet> | undefined
  let lastTurn = Number.NEGATIVE_INFINITY

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
  const fetchSoon = async () => {
    if (failed && age(failed) < times.pause) throw failed.error
    return (flight ??= fetchNow())
  }
  // One after a fetch that nobody unknown asked for comes at once: a key may be new however lately the others were fetched.
  const fetchInTurn = async () => {
    try {
      await sleep(Math.max(0, lastTurn + times.cooldown - performance.now()), undefined, { signal: ending })
      lastTurn = performance.now()
      return await fetchSoon()
    } finally {
      turn = undefined
    }
  }
  const share = async (shared: Promise<LocalJWKSet>, signal: AbortSignal): Promise<LocalJWKSet> => {
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
        return await share(fetchSoon(), signal)
      } catch (error) {
        if (held && age(held) < times.stale && !signal.aborted) return held.set
        throw error
      }
    },
    async after(known, signal) {
      if (held && held.set !== known) return held.set
      return share((turn ??= fetchInTurn()), signal)
    },
  }
}
