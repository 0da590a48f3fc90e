import { setTimeout as sleep } from 'node:timers/promises'
import { type Log, withTimeout } from '@svc/core'
import { createLocalJWKSet, type JSONWebKeySet, type LocalJWKSet } from 'jose'
import { answerRefused, issuerUnavailable } from './errors.ts'

/** Times in milliseconds. */
export interface KeyTimes {
  /** Age at which keys are fetched again. */
  readonly fresh: number
  /** Age up to which keys stay in use while the issuer is unreachable. */
  readonly stale: number
  /** Minimum time between two fetches for unknown keys, because any caller can name an unknown key. Requests in between wait for the next fetch. */
  readonly cooldown: number
  /** Time between a failed fetch and the next fetch. */
  readonly pause: number
}
export const KEY_TIMES: KeyTimes = { fresh: 600_000, stale: 3_600_000, cooldown: 5_000, pause: 5_000 }

/** Maximum time that a caller waits for the cooldown and the fetch. */
const WAIT_MS = 15_000

interface KeysOptions {
  readonly source: KeySource
  readonly times: KeyTimes
  readonly log: Log
  /** Aborts every fetch. */
  readonly signal: AbortSignal
}

/** The keys of the issuer. Concurrent callers share one fetch. */
export interface IssuerKeys {
  /** Throws UNAVAILABLE. */
  current(signal: AbortSignal): Promise<LocalJWKSet>
  /** Returns keys that are newer than `known`, in which a key is missing. Throws UNAVAILABLE. */
  after(known: LocalJWKSet, signal: AbortSignal): Promise<LocalJWKSet>
}

export function createKeys({ source, times, log, signal: ending }: KeysOptions): IssuerKeys {
  let cached: { readonly set: LocalJWKSet; readonly at: number } | undefined
  let failed: { readonly error: unknown; readonly at: number } | undefined
  let flight: Promise<LocalJWKSet> | undefined
  let turn: Promise<LocalJWKSet> | undefined
  let lastTurn = Number.NEGATIVE_INFINITY

  const age = ({ at }: { readonly at: number }) => performance.now() - at
  const fetchNow = async () => {
    try {
      const set = await fetchKeys(source, ending)
      cached = { set, at: performance.now() }
      failed = undefined
      return set
    } catch (error) {
      failed = { error, at: performance.now() }
      if (!ending.aborted) log.warn({ err: error, issuer: source.issuer }, 'failed to fetch the keys of the issuer')
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
      if (cached && age(cached) < times.fresh) return cached.set
      try {
        return await share(fetchSoon(), signal)
      } catch (error) {
        if (cached && age(cached) < times.stale && !signal.aborted) return cached.set
        throw error
      }
    },
    async after(known, signal) {
      if (cached && cached.set !== known) return cached.set
      return share((turn ??= fetchInTurn()), signal)
    },
  }
}

interface KeySource {
  readonly issuer: string
  /** Default: the URL in the discovery document of the issuer. */
  readonly jwksUri: string | undefined
}

/** Fetches the current keys of the issuer. */
async function fetchKeys({ issuer, jwksUri }: KeySource, signal: AbortSignal): Promise<LocalJWKSet> {
  const url = jwksUri === undefined ? await discover(issuer, signal) : new URL(jwksUri)
  const { keys } = await fetchJson(url, signal)
  return createLocalJWKSet({ keys: keys as JSONWebKeySet['keys'] }) // checks the form of the keys
}

/** Reads the discovery document, whose `issuer` must be equal to the requested one (OpenID Connect Discovery 1.0, section 4). */
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

/** Fetches a JSON object with limits on time and size. Follows no redirect. */
async function fetchJson(url: URL, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)])
  const headers = { accept: 'application/json', connection: 'close' }
  const response = await fetch(url, { signal: limited, redirect: 'error', headers })
  if (response.status !== 200 || !response.body) {
    await response.body?.cancel()
    throw answerRefused(url, `answers ${response.status}`)
  }
  const value: unknown = JSON.parse(await textOf(url, response.body))
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw answerRefused(url, 'did not answer with a JSON object')
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
