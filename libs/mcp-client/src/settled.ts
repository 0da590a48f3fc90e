import type { InputRequest } from '@svc/core/contracts'
import { CLOCK } from './clock.ts'
import { badOption } from './errors.ts'
import { type NamedServers, namedServers } from './named-servers.ts'
import { createMemoryStorage } from './oauth/memory-storage.ts'
import {
  type Backoff,
  type Clock,
  type HttpOptions,
  LIMITS,
  type McpClientOptions,
  type McpLimits,
  type ReconnectPolicy,
} from './options.ts'

/** Options with all that was left out. */
export interface Settled {
  readonly options: McpClientOptions
  readonly name: string
  readonly timeoutMs: number
  readonly maxTotalMs: number
  readonly connectMs: number
  readonly idleMs: number
  readonly quarantineAfter: number
  readonly reconnect: ReconnectPolicy
  readonly can: readonly InputRequest['method'][]
  readonly limits: McpLimits
  readonly clock: Clock
  /** Of a server somewhere else: what the operator has named. */
  readonly servers: () => NamedServers
}

const TIMEOUT_MS = 30_000
const CONNECT_MS = 30_000
const TIMES_WITH_PROGRESS = 10
const QUARANTINE_AFTER = 20

/** Throws CONFIG_INVALID. */
export function settle(options: McpClientOptions): Settled {
  const timeoutMs = above0('timeoutMs', options.timeoutMs ?? TIMEOUT_MS)
  let servers: NamedServers | undefined
  return {
    options: withStorage(options),
    name: options.name ?? (options.url === undefined ? options.command : shownUrl(options.url)),
    timeoutMs,
    maxTotalMs: Math.max(timeoutMs, options.maxTotalMs ?? TIMES_WITH_PROGRESS * timeoutMs),
    connectMs: above0('connectMs', options.connectMs ?? CONNECT_MS),
    idleMs: options.idleMs ?? 0,
    quarantineAfter: options.quarantineAfter ?? QUARANTINE_AFTER,
    reconnect: policyOf(options.reconnect ?? { maxAttempts: 5, backoff: 'exponential' }),
    can: options.can ?? ['elicitation/create'],
    limits: { ...LIMITS, ...options.limits },
    clock: options.clock ?? CLOCK,
    servers: () => (servers ??= namedServers(options as HttpOptions)),
  }
}

/** A login must outlive the connection that it was made on. */
function withStorage(options: McpClientOptions): McpClientOptions {
  if (options.url === undefined || options.oauth === undefined) return options
  return { ...options, oauth: { storage: createMemoryStorage(), ...options.oauth } }
}

/** Milliseconds of a wait. Throws CONFIG_INVALID where it is none. */
export function above0(what: string, ms: number): number {
  if (!(ms > 0) || !Number.isFinite(ms)) throw badOption(what, ms)
  return ms
}

const BACKOFFS: readonly string[] = ['exponential', 'linear', 'constant'] satisfies Backoff[]

/** A policy that can be kept to. Throws CONFIG_INVALID. */
export function policyOf({ maxAttempts, backoff }: ReconnectPolicy): ReconnectPolicy {
  if (!Number.isInteger(maxAttempts) || maxAttempts < 0) throw badOption('maxAttempts', maxAttempts)
  if (!BACKOFFS.includes(backoff)) throw badOption('backoff', backoff)
  return { maxAttempts, backoff }
}

/** An address without credentials, query and fragment. Throws CONFIG_INVALID. */
function shownUrl(written: string): string {
  const url = URL.parse(written)
  if (url === null) throw badOption('url', written.slice(0, 100))
  return url.origin + url.pathname
}
