import { codeOf, type SvcError } from '@svc/core'
import { serverUnavailable, storeUnavailable, storeUnsure } from '@svc/storage-kit'

type Explanation = readonly [reason: string, hint: string]

/** Errors of Redis, by the first word of their text. */
const REPLIES: Readonly<Record<string, Explanation>> = {
  OOM: ['the memory of Redis is full', 'Raise maxmemory of Redis, or delete keys of other programs'],
  NOAUTH: ['Redis requires a password', 'Set redis.password_file, password_env or password_command'],
  WRONGPASS: ['Redis rejected the user or the password', 'Check the user of redis.url, and the password'],
  NOPERM: ['the user of Redis lacks a right', 'Allow it EVAL, EVALSHA, PUBLISH, SUBSCRIBE, PING and the keys of svc'],
  READONLY: ['Redis accepts no writes: it is a replica', 'Name the primary in redis.url'],
  MISCONF: ['Redis accepts no writes: it cannot save to its disk', 'Read its log'],
  LOADING: ['Redis starts', 'Wait until it runs'],
  MASTERDOWN: ['Redis has lost its primary', 'Wait, or name the primary in redis.url'],
  BUSY: ['another script runs in Redis for too long', 'Find the program that runs it'],
  NOREPLICAS: ['Redis has too few replicas', 'Start them, or lower min-replicas-to-write'],
  ERR: ['Redis rejected the command', 'Use Redis 6.2 or newer'],
}
const SYSTEM: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no Redis server answers',
  ENOTFOUND: 'the host of Redis is unknown',
  EAI_AGAIN: 'the name of the Redis host cannot be resolved',
  ECONNRESET: 'the connection to Redis was reset',
  ETIMEDOUT: 'Redis does not answer',
  EPIPE: 'the connection to Redis is closed',
}

/** The code of an error of Redis, its first word; an error inside a script can follow another code. Undefined for another error. */
function replyOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return undefined
  return /^(?:[A-Z]+ (?=-))?-?([A-Z]+)\b/.exec(error.message)?.[1]
}

/** Whether an error of Redis means that another connection can find a better server, for example after a failover. */
export const isMisplaced = (error: unknown): boolean => ['READONLY', 'MASTERDOWN', 'NOAUTH'].includes(replyOf(error) ?? '')

export const isScriptMissing = (error: unknown): boolean => replyOf(error) === 'NOSCRIPT'

/**
 * An error of `ioredis` as one of the contract, with host and port of the server. It repeats no text of Redis, which can contain keys
 * and values.
 */
export function redisError(error: unknown, server: string): SvcError {
  if (codeOf(error)?.startsWith('STORE_')) return error as SvcError
  const reply = replyOf(error)
  if (reply === undefined) return unreachable(error, server)
  const [reason, hint] = REPLIES[reply] ?? [`Redis failed (${reply.slice(0, 20)})`, 'Read its log']
  return serverUnavailable(reason, hint, server)
}

/** Nothing was sent. */
const unreachable = (cause: unknown, server: string): SvcError =>
  serverUnavailable(
    SYSTEM[systemCode(cause)] ?? 'the connection to Redis failed',
    'Check Redis, the network, and redis.tls.mode',
    server
  )

/** Several addresses of one host fail together. */
const systemCode = (error: unknown): string =>
  codeOf(error) ?? (error instanceof AggregateError ? (codeOf(error.errors[0]) ?? '') : '')

export const closed = (): SvcError => storeUnavailable('the connection to Redis is closed', 'Restart the server')

/** The answer did not come. */
export const lost = (): SvcError => storeUnsure('the connection to Redis was lost')
