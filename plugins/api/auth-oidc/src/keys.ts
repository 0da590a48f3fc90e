import { setTimeout as sleep } from 'node:timers/promises'
import { type Log, withTimeout } from '@svc/core'
import { createLocalJWKSet, type JSONWebKeySet, type LocalJWKSet } from 'jose'
import { answerRefused, issuerUnavailable } from './errors.ts'

/** Milliseconds. */
export interface KeyTimes {
  /** That fetched keys count; then they are fetched again. */
  readonly fresh: number
  /** That they still count while the issuer cannot be reached. */
  readonly stale: number
  /** Between two fetches for unknown keys, because any caller can name one. Requests in between wait for the next fetch. */
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
  // After a regular fetch, the first fetch for an unknown key starts at once: the issuer can have added a key since.
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
      return await withTimeout(WAIT_MS, () => shared, { signal })
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

interface IssuerPlace {
  readonly issuer: string
  /** Absent: what the issuer's discovery document says. */
  readonly jwksUri: string | undefined
}

/** Fetches the keys that the issuer signs with now. */
async function fetchKeys(place: IssuerPlace, signal: AbortSignal): Promise<LocalJWKSet> {
  const url = place.jwksUri === undefined ? await discover(place.issuer, signal) : new URL(place.jwksUri)
  const { keys } = await fetchJson(url, signal)
  return createLocalJWKSet({ keys: keys as JSONWebKeySet['keys'] }) // which checks the form
}

/** OpenID Connect Discovery 1.0, section 4: the document must say the very issuer it was asked for. */
async function discover(issuer: string, signal: AbortSignal): Promise<URL> {
  const url = new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const { issuer: named, jwks_uri: uri } = await fetchJson(url, signal)
  if (named !== issuer) throw answerRefused(url, 'names another issuer')
  if (typeof uri !== 'string' || !URL.canParse(uri)) throw answerRefused(url, 'names no jwks_uri')
  const keys = new URL(uri)
  if (keys.protocol !== 'https:' && keys.origin !== url.origin) throw answerRefused(url, 'names a jwks_uri without TLS')
  return keys
}

const LONGEST_BYTES = 1_048_576
const LIMIT_MS = 5_000

/** The object that stands at an address: in time, of a bounded size, and from there alone: no redirect is followed. */
async function fetchJson(url: URL, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)])
  const headers = { accept: 'application/json', connection: 'close' }
  const response = await fetch(url, { signal: limited, redirect: 'error', headers })
  if (response.status !== 200 || !response.body) {
    await response.body?.cancel()
    throw answerRefused(url, `answers ${response.status}`)
  }
  const value: unknown = JSON.parse(await textOf(url, response.body))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw answerRefused(url, 'answers no object')
  return value as Readonly<Record<string, unknown>>
}

async function textOf(url: URL, body: ReadableStream<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of body) {
    size += part.byteLength
    if (size > LONGEST_BYTES) throw answerRefused(url, `answers more than ${LONGEST_BYTES} bytes`)
    parts.push(part)
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts))
}
