import { nearest, svcError } from '@svc/core'
import { LIMITS, type McpLimits } from '@svc/mcp-protocol'
import { createMemoryStorage } from '@svc/mcp-protocol/oauth'
import type { NamedServers } from '@svc/mcp-protocol/server-fetch'
import { createNamedServer } from '@svc/safe-fetch'
import { badOption } from '../errors.ts'
import { type Backoff, type HttpOptions, type McpClientOptions, PROGRESS_FACTOR, TIMEOUT_S } from './client-types.ts'

/** Options with all defaults. */
export interface ResolvedOptions
  extends Required<Pick<McpClientOptions, 'name' | 'connectMs' | 'can' | 'idleMs' | 'quarantineAfter'>> {
  readonly input: McpClientOptions
  readonly timeoutMs: number
  readonly maxTotalMs: number
  readonly reconnect: ReconnectPolicy
  readonly limits: McpLimits
  /** For a remote server: the servers that the operator names. */
  readonly servers: () => NamedServers
}

/** Throws CONFIG_INVALID. */
export function resolveOptions(input: McpClientOptions): ResolvedOptions {
  for (const key of Object.keys(input)) if (!KEYS.includes(key)) throw unknownOption(key)
  const { timeout = TIMEOUT_S, maxTimeout = PROGRESS_FACTOR * timeout, connectMs = 30_000, idleMs = 0 } = input
  const timeoutMs = positive('timeout', timeout, 1_000)
  let servers: NamedServers | undefined
  return {
    input: withStorage(input),
    name: input.name ?? (input.url === undefined ? input.command : shownUrl(input.url)),
    timeoutMs,
    maxTotalMs: Math.max(timeoutMs, positive('maxTimeout', maxTimeout, 1_000)),
    connectMs: positive('connectMs', connectMs),
    idleMs: Math.min(idleMs, LONGEST_MS),
    quarantineAfter: input.quarantineAfter ?? 20,
    reconnect: policyOf(input.retryAttempts ?? 5, input.backoff ?? 'exponential'),
    can: input.can ?? ['elicitation/create'],
    limits: { ...LIMITS, ...input.limits },
    servers: () => (servers ??= namedServers(input as HttpOptions)),
  }
}

const KEYS: readonly string[] = [
  'name tools timeout maxTimeout retryAttempts backoff connectMs can idleMs quarantineAfter known limits',
  'url apiKey apiKeyHeader oauth networkAccess allow ca',
  'command args env cwd wrap',
].flatMap(keys => keys.split(' '))

/** A login must outlive the connection on which it was made. */
function withStorage(input: McpClientOptions): McpClientOptions {
  if (input.url === undefined || input.oauth === undefined) return input
  return { ...input, oauth: { storage: createMemoryStorage(), ...input.oauth } }
}

/** The longest timer of Node: a longer one fires at once. */
const LONGEST_MS = 2 ** 31 - 1

/** Milliseconds of a time above 0. Throws CONFIG_INVALID. */
export function positive(option: string, value: number, unitMs = 1): number {
  if (!(value > 0) || !Number.isFinite(value)) throw badOption(option, value)
  return Math.min(value * unitMs, LONGEST_MS)
}

/** How a connection is made again. */
export interface ReconnectPolicy {
  readonly retryAttempts: number
  readonly backoff: (failures: number) => number
}

/** Throws CONFIG_INVALID. */
export function policyOf(retryAttempts: number, backoff: Backoff): ReconnectPolicy {
  if (!Number.isInteger(retryAttempts) || retryAttempts < 0) throw badOption('retryAttempts', retryAttempts)
  if (typeof backoff === 'function') return { retryAttempts, backoff }
  if (!Object.hasOwn(BACKOFFS, backoff)) throw badOption('backoff', backoff)
  return { retryAttempts, backoff: BACKOFFS[backoff] }
}

const unknownOption = (option: string) =>
  svcError('CONFIG_INVALID', `there is no option "${option.slice(0, 100)}"`, {
    details: { option: option.slice(0, 100) },
    hint: `Use ${nearest(option, KEYS) ?? `one of: ${KEYS.join(', ')}`}`,
  })

/** An address without credentials, query and fragment. Throws CONFIG_INVALID. */
function shownUrl(written: string): string {
  const url = URL.parse(written)
  if (url === null) throw badOption('url', written.slice(0, 100))
  return url.origin + url.pathname
}

function namedServers({ url, oauth }: HttpOptions): NamedServers {
  const logins = [oauth?.tokenUrl, oauth?.issuer].filter(one => one !== undefined)
  return { itself: createNamedServer(url), logins: logins.map(one => createNamedServer(one).guard) }
}

const FIRST_WAIT_MS = 500
const MAX_WAIT_MS = 30_000

/** Milliseconds before the next attempt, by the number of consecutive failures. */
export const BACKOFFS = {
  exponential: failures => Math.round(Math.random() * Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** failures)),
  linear: failures => Math.min(MAX_WAIT_MS, 1_000 * (failures + 1)),
  constant: () => 1_000,
} satisfies Record<Exclude<Backoff, Function>, (failures: number) => number>
