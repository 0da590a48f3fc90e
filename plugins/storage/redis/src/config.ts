import { schema, type SvcError, svcError } from '@svc/core'
import { LOGIN_PROPERTIES, type LoginConfig, passwordOf, tlsOf } from '@svc/storage-kit/server-login'
import type { ConnectionOptions } from './connection.ts'

/** What svc can use Redis for. */
const USES = ['counts', 'cache', 'bus', 'queue'] as const
/** The queue of runs is in Redis only if the configuration asks for it. */
const DEFAULT_USES: readonly (typeof USES)[number][] = ['counts', 'cache', 'bus']

export interface RedisConfig extends LoginConfig {
  url?: string
  use: readonly (typeof USES)[number][]
  connect_timeout_ms: number
  command_timeout_ms: number
  wait_ms: number
}

const ms = (value: number, maximum: number, description: string) =>
  ({ type: 'integer', minimum: 100, maximum, default: value, description }) as const

/** The section `redis`. */
export const config = schema<RedisConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    url: {
      type: 'string',
      minLength: 1,
      description: 'The server: redis://user@host:6379/0, or rediss:// with TLS. It selects the plugins that use Redis.',
    },
    ...LOGIN_PROPERTIES,
    use: {
      type: 'array',
      items: { enum: [...USES] },
      uniqueItems: true,
      default: [...DEFAULT_USES],
      description:
        'What svc uses Redis for: `counts` (rate limits), `cache` (cached values), `bus` (messages between the workers of a cluster), `queue` (which worker executes a run, with BullMQ; only if it is named here).',
    },
    connect_timeout_ms: ms(3_000, 10_000, 'Milliseconds until a connection attempt fails.'),
    command_timeout_ms: ms(3_000, 10_000, 'Milliseconds without an answer until svc replaces the connection.'),
    wait_ms: ms(1_000, 60_000, 'Milliseconds after the loss of the connection in which requests wait for the next one.'),
  },
})

const LOGIN = {
  section: 'redis',
  server: 'Redis',
  wrong: (message: string, hint: string): SvcError => svcError('REDIS_CONFIG_INVALID', message, { hint }),
} as const
const FORM = 'redis://user@host:6379/0'
const URL_FORM =
  /^(?<scheme>rediss?):\/\/(?:(?<user>[^:@/?]*)(?::(?<password>[^@/?]*))?@)?(?<host>\[[^\s\]@/?]+\]|[^\s:[\]@/?]+)?(?::(?<port>\d{1,5}))?(?:\/(?<db>\d{1,3})?)?$/

/** How to connect, from the section. Throws REDIS_CONFIG_INVALID, without a value of the configuration. */
export function connectionOf(settings: RedisConfig): ConnectionOptions {
  if (settings.url === undefined) throw LOGIN.wrong('redis.url is missing', `Set redis.url to ${FORM}`)
  const { isEncrypted, password: inUrl, ...place } = placeIn(settings.url)
  const password = passwordOf(inUrl, settings, LOGIN)
  if (isEncrypted && settings.tls?.mode === 'off')
    throw LOGIN.wrong('redis.url asks for TLS, and redis.tls.mode is "off"', 'Remove one of them')
  return {
    ...place,
    ...(password === undefined ? {} : { password }),
    tls: tlsOf([place.host], settings, LOGIN, isEncrypted ? 'verified' : undefined),
    connectMs: settings.connect_timeout_ms,
    commandMs: settings.command_timeout_ms,
    waitMs: settings.wait_ms,
  }
}

type Place = Pick<ConnectionOptions, 'host' | 'port' | 'db' | 'user'> & {
  readonly isEncrypted: boolean
  readonly password?: string
}

function placeIn(url: string): Place {
  const parts: Readonly<Record<string, string | undefined>> = URL_FORM.exec(url)?.groups ?? {}
  const { scheme, user, password, host = 'localhost', port = '6379', db = '0' } = parts
  if (scheme === undefined || Number(port) < 1 || Number(port) > 65_535)
    throw LOGIN.wrong('redis.url is not the URL of a Redis server', `Write ${FORM}, and %40 for an "@" in the password`)
  return {
    isEncrypted: scheme === 'rediss',
    host: host.replace(/^\[|\]$/g, ''),
    port: Number(port),
    db: Number(db),
    ...(user ? { user: decoded(user) } : {}),
    ...(password === undefined ? {} : { password: decoded(password) }),
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw LOGIN.wrong('redis.url has a "%" that is not followed by two hexadecimal digits', 'Write %25 for "%"')
  }
}
