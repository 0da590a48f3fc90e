import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { codeOf, filesOfCommand, registerSecret, shownPath, type SvcError, svcError } from '@svc/core'

// The password and the encryption of connections to a server with data, such as PostgreSQL or Redis: the same keys in each section.

/** These keys of a section. */
export interface LoginConfig {
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
}

const file = (description: string) => ({ type: 'string', minLength: 1, description }) as const

/** Their schemas. */
export const LOGIN_PROPERTIES = {
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
} as const

export interface LoginOptions {
  /** Of the configuration: `store`. */
  readonly section: string
  /** Of the server, for messages: `PostgreSQL`. */
  readonly server: string
  /** The error for a wrong configuration. */
  readonly wrong: (message: string, hint: string) => SvcError
}

/** How long a password command may take. */
const COMMAND_MS = 10_000

/**
 * The password: a text, or a function that reads it for a connection. It throws STORE_UNAVAILABLE. The log never shows a password.
 * `inUrl` is that of the URL, decoded.
 */
export function passwordOf(
  inUrl: string | undefined,
  settings: LoginConfig,
  { section, server, wrong }: LoginOptions
): string | (() => Promise<string>) | undefined {
  const { password_env: variable, password_file: path, password_command: command } = settings
  const given = [inUrl, variable, path, command].filter(item => item !== undefined)
  if (given.length > 1)
    throw wrong(
      `${section} has more than one password`,
      'Set one of password_env, password_file and password_command, or write it in the URL'
    )
  const failed = (reason: string, where?: string) => noPassword(section, server, reason, where)
  let [last, forget]: [string?, (() => void)?] = []
  const secret = (read: () => Promise<string>) => async () => {
    const text = (await read()).replace(/\r?\n$/, '')
    if (text === '') throw failed('it is empty')
    if (text !== last) {
      forget?.()
      ;[last, forget] = [text, registerSecret(text)]
    }
    return text
  }
  if (inUrl !== undefined) {
    registerSecret(inUrl)
    return inUrl
  }
  if (variable !== undefined) return secret(async () => process.env[variable] ?? '')
  if (path !== undefined)
    return secret(() =>
      readFile(path, 'utf8').catch((error: unknown) => {
        throw failed(`${section}.password_file cannot be read: ${fileReason(error)}`, shownPath(path))
      })
    )
  if (command === undefined) return undefined
  return secret(async () => {
    try {
      const [program, ...args] = command
      return (await promisify(execFile)(program!, args, { timeout: COMMAND_MS, maxBuffer: 65_536 })).stdout
    } catch {
      throw failed(`${section}.password_command failed`) // its output can contain the password
    }
  })
}

/** The setting that has the password, unless the URL has it; undefined if there is none. */
export function passwordKeyOf(settings: LoginConfig, { section }: Pick<LoginOptions, 'section'>): string | undefined {
  const key = (['password_env', 'password_file', 'password_command'] as const).find(name => settings[name] !== undefined)
  return key && `${section}.${key}`
}

/** `reason` contains nothing that a command printed. `where` is for the terminal and the log: HTTP clients get no path. */
const noPassword = (section: string, server: string, reason: string, where?: string): SvcError =>
  svcError('STORE_UNAVAILABLE', `there is no password for ${server}: ${reason}`, {
    details: { retryable: true },
    hint: `Check ${section}.password_env, password_file or password_command`,
    ...(where === undefined ? {} : { where }),
  })

const FILE_REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'the file does not exist',
  ENOTDIR: 'a part of the path is not a folder',
  EACCES: 'the user of svc has no permission',
  EPERM: 'the user of svc has no permission',
  EISDIR: 'it is a folder',
}

/** Why a file cannot be read. The messages of the system contain its path. */
const fileReason = (error: unknown): string => {
  const code = codeOf(error) ?? ''
  return FILE_REASONS[code] ?? `the system reports ${code || 'an unknown error'}`
}

const LOCAL = /^(localhost|127\.\d+\.\d+\.\d+|::1|\/.*)$/

/** Options of `node:tls`, or false. `asked` is what the URL asks for. */
export function tlsOf(
  hosts: readonly string[],
  settings: LoginConfig,
  { section, wrong }: LoginOptions,
  asked?: NonNullable<LoginConfig['tls']>['mode']
): object | false {
  const tls = settings.tls ?? {}
  const isLocal = hosts.every(host => LOCAL.test(host)) && Object.keys(tls).length === 0
  const mode = tls.mode ?? asked ?? (isLocal ? 'off' : 'verified')
  if (mode === 'off') return false
  const read = (key: 'ca_file' | 'cert_file' | 'key_file') => {
    const path = tls[key]
    if (path === undefined) return undefined
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      throw wrong(`${section}.tls.${key} cannot be read: ${fileReason(error)}`, 'Check the path and the rights of the file')
    }
  }
  const options = { ca: read('ca_file'), cert: read('cert_file'), key: read('key_file'), servername: tls.server_name }
  return {
    rejectUnauthorized: mode === 'verified',
    ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
  }
}

/** Files that no tool may write: one could run code as svc at the next connection, or choose the server that svc trusts. */
export function loginFiles({ password_file: password, password_command: command = [], tls = {} }: LoginConfig): string[] {
  const files = [password, tls.key_file, tls.cert_file, tls.ca_file].filter(path => path !== undefined)
  return [...files.map(path => resolve(path)), ...filesOfCommand(command, process.cwd())]
}
