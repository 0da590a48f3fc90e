import { hostname } from 'node:os'
import { schema, type SvcError } from '@svc/core'
import { LOGIN_PROPERTIES, type LoginConfig, passwordKeyOf, passwordOf, tlsOf } from '@svc/storage-kit/server-login'
import { configWrong } from './errors.ts'
import type { Target } from './line.ts'
import type { PostgresOptions } from './store.ts'

export interface PostgresConfig extends LoginConfig {
  url?: string
  direct_url?: string
  schema: string
  readers: number
  migrate: boolean
  connect_timeout_ms: number
  statement_timeout_ms: number
  wait_ms: number
}

const ms = (value: number, description: string) =>
  ({ type: 'integer', minimum: 100, maximum: 600_000, default: value, description }) as const

const PROPERTIES = {
  url: {
    type: 'string',
    minLength: 1,
    description:
      'The database: postgres://user@host:5432/name. Several hosts, separated by commas, are tried until one accepts writes. A pooler in transaction mode is allowed.',
  },
  direct_url: {
    type: 'string',
    minLength: 1,
    description: 'PostgreSQL itself, if url is a pooler: for notifications and for creating tables.',
  },
  schema: {
    type: 'string',
    pattern: '^[a-z_][a-z0-9_]{0,49}$',
    default: 'svc',
    description: 'The schema of the tables.',
  },
  ...LOGIN_PROPERTIES,
  readers: {
    type: 'integer',
    minimum: 1,
    maximum: 20,
    default: 2,
    description: 'Connections of each worker for reads. It has four others.',
  },
  migrate: {
    type: 'boolean',
    default: true,
    description: 'Whether a server creates missing tables. Otherwise run `svc store init` first.',
  },
  connect_timeout_ms: ms(5000, 'Milliseconds until a connection attempt fails.'),
  statement_timeout_ms: ms(10_000, 'Milliseconds until a statement, or an idle transaction, is cancelled.'),
  wait_ms: ms(5000, 'Milliseconds that a request waits for a connection.'),
} as const

/** The section `store`. */
export const config = schema<PostgresConfig>({ type: 'object', additionalProperties: false, properties: PROPERTIES })

/** The section as a command reads it: without the defaults, and not checked. Throws STORE_CONFIG_INVALID. */
export function withDefaults(settings: unknown): PostgresConfig {
  const given = (settings ?? {}) as Readonly<Record<string, unknown>>
  const properties: Readonly<Record<string, { readonly default?: unknown; readonly type?: string }>> = PROPERTIES
  const wrong = Object.entries(given).find(([key, value]) => {
    const type = properties[key]?.type
    return (
      type === undefined ||
      (type === 'integer' ? !Number.isSafeInteger(value) : (Array.isArray(value) ? 'array' : typeof value) !== type)
    )
  })
  if (wrong) throw configWrong(`store.${wrong[0]} is not valid`, 'Run `svc config check`')
  const defaults = Object.entries(properties).map(([key, property]) => [key, given[key] ?? property.default])
  return Object.fromEntries(defaults.filter(([, value]) => value !== undefined)) as PostgresConfig
}

/** `?sslmode=` of a URL; svc encrypts or it does not. */
const MODES: Readonly<Record<string, NonNullable<LoginConfig['tls']>['mode']>> = {
  disable: 'off',
  require: 'unverified',
  'no-verify': 'unverified',
  'verify-ca': 'verified',
  'verify-full': 'verified',
}
const KNOWN = new Set(['sslmode', 'host', 'target_session_attrs'])
const URL_FORM =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/?]*)(?::(?<password>[^@/?]*))?@)?(?<hosts>[^/?]*)(?:\/(?<database>[^?]*))?(?:\?(?<query>.*))?$/

const LOGIN = { section: 'store', server: 'PostgreSQL', wrong: configWrong } as const

/** The options of a store, from the section `store`. Throws STORE_CONFIG_INVALID, without a value of the configuration. */
export function connectionOf(settings: PostgresConfig): Omit<PostgresOptions, 'schema'> & { readonly schema: string } {
  if (settings.url === undefined) throw configWrong('store.url is missing', 'Set store.url to postgres://user@host:5432/name')
  const target = targetOf('store.url', settings.url, settings)
  return {
    target,
    ...(settings.direct_url === undefined ? {} : { direct: targetOf('store.direct_url', settings.direct_url, settings) }),
    schema: settings.schema,
    readers: settings.readers,
    waitMs: settings.wait_ms,
    mayMake: settings.migrate,
  }
}

function targetOf(name: string, url: string, settings: PostgresConfig): Target {
  if (!/^postgres(ql)?:\/\//.test(url)) throw wrongScheme(name, url)
  const parts = URL_FORM.exec(url)?.groups
  if (!parts) throw configWrong(`${name} is not the URL of a PostgreSQL database`, 'Write postgres://user@host:5432/name')
  const query = new URLSearchParams(parts.query)
  const unknown = [...query.keys()].find(key => !KNOWN.has(key))
  if (unknown !== undefined)
    throw configWrong(`${name} has the unknown parameter "${unknown}"`, `Remove it. Known are ${[...KNOWN].join(', ')}`)
  const hosts = hostsOf(name, query.get('host') ?? parts.hosts ?? '')
  const inUrl = parts.password === undefined ? undefined : decoded(name, parts.password)
  const password = passwordOf(inUrl, settings, LOGIN)
  return {
    hosts,
    ...(parts.user ? { user: decoded(name, parts.user) } : {}),
    ...(parts.database ? { database: decoded(name, parts.database) } : {}),
    ...(password === undefined ? {} : { password, passwordFrom: inUrl === undefined ? passwordKeyOf(settings, LOGIN) : name }),
    ssl: tlsOf(
      hosts.map(({ host }) => host),
      settings,
      LOGIN,
      modeOf(name, query.get('sslmode'))
    ),
    applicationName: `svc ${hostname().replaceAll(' ', '_').slice(0, 32)}/${process.pid}`,
    connectMs: settings.connect_timeout_ms,
    statementMs: settings.statement_timeout_ms,
  }
}

/** What is before a host or path. The rest of a URL can be a password, and so can what is before a ":" alone. */
const SCHEME = /^(?:sqlite3?:|file:|[a-z][a-z+]{1,19}(?=:\/|\/\/))(?::?\/{0,2})/i

function wrongScheme(name: string, url: string): SvcError {
  const [begin] = SCHEME.exec(url) ?? []
  const file = name === 'store.url' ? '. For a file of SQLite, remove store.url and set store.path' : ''
  return configWrong(
    `${name} must begin with postgres:// or postgresql://${begin === undefined ? '' : `, but begins with ${begin}`}`,
    `Write postgres://user@host:5432/name${file}`
  )
}

function decoded(name: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw configWrong(`${name} has a "%" that is not followed by two hexadecimal digits`, 'Write %25 for "%"')
  }
}

function hostsOf(name: string, text: string): Target['hosts'] {
  return (text === '' ? 'localhost' : text).split(',').map(item => {
    if (item.startsWith('/') || item.startsWith('%2F')) return { host: decoded(name, item), port: 5432 }
    const [, host, port] = /^(\[[^\]@]+\]|[^:[\]@]+)(?::(\d{1,5}))?$/.exec(item) ?? []
    if (host === undefined || Number(port ?? 1) > 65_535 || Number(port ?? 1) < 1)
      throw configWrong(
        `${name} has a host that is not "host" or "host:port"`,
        'Write postgres://user@host:5432/name, and %40 for an "@" in the password'
      )
    return { host: host.replace(/^\[|\]$/g, ''), port: Number(port ?? 5432) }
  })
}

function modeOf(name: string, sslmode: string | null) {
  if (sslmode !== null && MODES[sslmode] === undefined)
    throw configWrong(`${name} has an unknown sslmode`, `Use one of ${Object.keys(MODES).join(', ')}`)
  return sslmode === null ? undefined : MODES[sslmode]
}
