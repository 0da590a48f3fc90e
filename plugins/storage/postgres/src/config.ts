import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { promisify } from 'node:util'
import { registerSecret, schema } from '@svc/core'
import { configWrong, passwordFailed } from './errors.ts'
import type { Target } from './line.ts'
import type { PostgresOptions } from './store.ts'

export interface PostgresConfig {
  url?: string
  direct_url?: string
  schema: string
  password_env?: string
  password_file?: string
  password_command?: readonly string[]
  tls?: {
    mode?: 'off' | 'unverified' | 'verified'
    ca_file?: string
    cert_file?: string
    key_file?: string
    server_name?: string
  }
  readers: number
  migrate: boolean
  connect_timeout_ms: number
  statement_timeout_ms: number
  wait_ms: number
}

const file = (description: string) => ({ type: 'string', minLength: 1, description }) as const
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
  password_env: { type: 'string', minLength: 1, description: 'The environment variable with the password.' },
  password_file: file('A file with the password. svc reads it for each new connection.'),
  password_command: {
    type: 'array',
    items: { type: 'string' },
    minItems: 1,
    description: 'A program with its arguments that prints the password. svc runs it for each new connection.',
  },
  tls: {
    type: 'object',
    additionalProperties: false,
    description: 'Encryption of connections.',
    properties: {
      mode: {
        enum: ['off', 'unverified', 'verified'],
        description: 'Default: verified; off for this machine.',
      },
      ca_file: file('The certificate of the authority that signed that of the server.'),
      cert_file: file('The certificate of svc.'),
      key_file: file('Its private key.'),
      server_name: { type: 'string', minLength: 1, description: 'The name in the certificate, if it is not the host.' },
    },
  },
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
const MODES: Readonly<Record<string, NonNullable<PostgresConfig['tls']>['mode']>> = {
  disable: 'off',
  require: 'unverified',
  'no-verify': 'unverified',
  'verify-ca': 'verified',
  'verify-full': 'verified',
}
const KNOWN = new Set(['sslmode', 'host', 'target_session_attrs'])
const URL_FORM =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/?]*)(?::(?<password>[^@/?]*))?@)?(?<hosts>[^/?]*)(?:\/(?<database>[^?]*))?(?:\?(?<query>.*))?$/

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
  const parts = URL_FORM.exec(url)?.groups
  if (!parts) throw configWrong(`${name} is not the URL of a PostgreSQL database`, 'Write postgres://user@host:5432/name')
  const query = new URLSearchParams(parts.query)
  const unknown = [...query.keys()].find(key => !KNOWN.has(key))
  if (unknown !== undefined)
    throw configWrong(`${name} has the unknown parameter "${unknown}"`, `Remove it. Known are ${[...KNOWN].join(', ')}`)
  const hosts = hostsOf(name, query.get('host') ?? parts.hosts ?? '')
  const password = passwordOf(parts.password, settings)
  return {
    hosts,
    ...(parts.user ? { user: decoded(name, parts.user) } : {}),
    ...(parts.database ? { database: decoded(name, parts.database) } : {}),
    ...(password === undefined ? {} : { password }),
    ssl: tlsOf(name, query.get('sslmode'), hosts, settings.tls ?? {}),
    applicationName: `svc ${hostname().replaceAll(' ', '_').slice(0, 32)}/${process.pid}`,
    connectMs: settings.connect_timeout_ms,
    statementMs: settings.statement_timeout_ms,
  }
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

/** How long a password command may take. */
const COMMAND_MS = 10_000

function passwordOf(inUrl: string | undefined, settings: PostgresConfig): Target['password'] {
  const { password_env: variable, password_file: path, password_command: command } = settings
  const given = [inUrl, variable, path, command].filter(item => item !== undefined)
  if (given.length > 1)
    throw configWrong(
      'store has more than one password',
      'Set one of password_env, password_file and password_command, or write it in the URL'
    )
  let [last, forget]: [string?, (() => void)?] = []
  const secret = (read: () => Promise<string>) => async () => {
    const text = (await read()).replace(/\r?\n$/, '')
    if (text === '') throw passwordFailed('it is empty')
    if (text !== last) {
      forget?.()
      ;[last, forget] = [text, registerSecret(text)]
    }
    return text
  }
  if (inUrl !== undefined) {
    const password = decoded('store.url', inUrl)
    registerSecret(password)
    return password
  }
  if (variable !== undefined) return secret(async () => process.env[variable] ?? '')
  if (path !== undefined)
    return secret(() => readFile(path, 'utf8').catch(() => Promise.reject(passwordFailed('store.password_file cannot be read'))))
  if (command === undefined) return undefined
  return secret(async () => {
    try {
      const [program, ...args] = command
      return (await promisify(execFile)(program!, args, { timeout: COMMAND_MS, maxBuffer: 65_536 })).stdout
    } catch {
      throw passwordFailed('store.password_command failed') // its output can contain the password
    }
  })
}

const LOCAL = /^(localhost|127\.\d+\.\d+\.\d+|::1|\/.*)$/

function tlsOf(
  name: string,
  sslmode: string | null,
  hosts: Target['hosts'],
  tls: NonNullable<PostgresConfig['tls']>
): object | false {
  if (sslmode !== null && MODES[sslmode] === undefined)
    throw configWrong(`${name} has an unknown sslmode`, `Use one of ${Object.keys(MODES).join(', ')}`)
  const mode =
    tls.mode ??
    (sslmode === null ? undefined : MODES[sslmode]) ??
    (hosts.every(({ host }) => LOCAL.test(host)) && Object.keys(tls).length === 0 ? 'off' : 'verified')
  if (mode === 'off') return false
  const read = (key: 'ca_file' | 'cert_file' | 'key_file') => {
    const path = tls[key]
    if (path === undefined) return undefined
    try {
      return readFileSync(path, 'utf8')
    } catch {
      throw configWrong(`store.tls.${key} cannot be read`, 'Check the path and the rights of the file')
    }
  }
  const options = { ca: read('ca_file'), cert: read('cert_file'), key: read('key_file'), servername: tls.server_name }
  return {
    rejectUnauthorized: mode === 'verified',
    ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
  }
}
