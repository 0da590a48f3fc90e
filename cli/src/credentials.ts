import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { codeOf, messageOf } from '@svc/core'
import { headerInvalid, helperFailed } from './errors.ts'

/** A request that needs credentials. `path` begins with a slash. */
interface CredentialRequest {
  readonly method: string
  readonly path: string
  readonly body?: string
}

/** The credentials of a command for one server. */
export interface Credentials {
  headers(request: CredentialRequest, signal?: AbortSignal): Promise<Record<string, string>>
  /** Reports a 401 to the credential helper. Resolves with true if another request can have other credentials. */
  rejected(signal?: AbortSignal): Promise<boolean>
}

export interface CredentialSources {
  /** Values of --header: `Name: value`, or `@file` with one header a line. */
  readonly header?: readonly string[] | undefined
  readonly env?: NodeJS.ProcessEnv
}

/**
 * The credentials for the server at `url`: `SVC_API_KEY`, then those of the helper program in `SVC_CREDENTIAL_HELPER`, then the
 * headers of the command line. A later source replaces a header of an earlier one. Throws HEADER_INVALID.
 */
export function createCredentials(url: string, { header = [], env = process.env }: CredentialSources = {}): Credentials {
  const own = Object.fromEntries(header.flatMap(headersIn))
  const words = wordsIn(env.SVC_CREDENTIAL_HELPER ?? '')
  const helper = words.length === 0 ? undefined : createHelper(words, new URL(url))
  const key = helper === undefined ? credentialHeaders(env.SVC_API_KEY) : {}
  return {
    headers: async (request, signal) => merged(key, (await helper?.get(request, signal)) ?? {}, own),
    rejected: async signal => (await helper?.erase(signal)) ?? false,
  }
}

/** The prefix of tokens of `svc tokens create`. */
const TOKEN = /^svc_/

/** The header for `SVC_API_KEY`: an API key, or a token of `svc tokens create`. */
function credentialHeaders(key: string | undefined): Record<string, string> {
  if (!key) return {}
  return TOKEN.test(key) ? { authorization: `Bearer ${key}` } : { 'x-api-key': key }
}

const merged = (...all: readonly Readonly<Record<string, string>>[]): Record<string, string> =>
  Object.fromEntries(all.flatMap(headers => Object.entries(headers)))

// --- headers ---

const HEADER = /^([\w!#$%&'*+.^`|~-]+):[ \t]*([^\p{Cc}]*)$/u
/** Headers that describe the connection or the body, which this program sets. */
const NOT_OWN = /^(host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|content-(length|type|encoding)|accept)$/

/** A file keeps a secret out of the list of processes. */
function headersIn(word: string): [name: string, value: string][] {
  if (!word.startsWith('@')) return [headerIn(word)]
  const lines = textOf(word.slice(1)).split(/\r?\n/)
  return lines.filter(line => line.trim() !== '').map(headerIn)
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw headerInvalid(`the file of --header cannot be read: ${messageOf(error)}`)
  }
}

/** An error does not repeat the text, which can be a secret. */
function headerIn(text: string): [name: string, value: string] {
  const [, name = '', value = ''] = HEADER.exec(text.trim()) ?? []
  if (name === '') throw headerInvalid('a header does not have the form "Name: value"')
  if (NOT_OWN.test(name.toLowerCase())) throw headerInvalid(`svc sets the header ${name} itself`)
  return [name.toLowerCase(), value]
}

// --- the helper ---

/** Splits a command at spaces. Quotes keep spaces. No shell reads it, so other characters have no meaning. */
function wordsIn(command: string): string[] {
  const words = command.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? []
  return words.map(word => word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'))
}

type Attributes = readonly (readonly [name: string, value: string])[]

interface Helper {
  get(request: CredentialRequest, signal?: AbortSignal): Promise<Record<string, string>>
  erase(signal?: AbortSignal): Promise<boolean>
}

/** Asks a program in the protocol of Git's credential helpers, and keeps its answer unless it is `ephemeral`. */
function createHelper(words: readonly string[], { protocol, host }: URL): Helper {
  let kept: { readonly answer: Attributes; readonly headers: Record<string, string> } | undefined
  const place: Attributes = [
    ['protocol', protocol.replace(':', '')],
    ['host', host],
  ]
  return {
    async get(request, signal) {
      if (kept) return kept.headers
      const answer = await runHelper(words, 'get', [...place, ...describing(request)], signal)
      const headers = headersOf(answer)
      if (!answer.some(([name, value]) => name === 'ephemeral' && isTrue(value))) kept = { answer, headers }
      return headers
    },
    async erase(signal) {
      if (kept === undefined) return false
      const { answer } = kept
      kept = undefined
      await runHelper(words, 'erase', [...place, ...answer.filter(([name]) => ERASED.has(name))], signal)
      return true
    },
  }
}

const isTrue = (value: string) => /^(1|true|yes|on)$/i.test(value)

/** What identifies a credential when it is erased. */
const ERASED = new Set(['username', 'password', 'authtype', 'credential'])

/** Git's attributes, and those that a signature of the request needs. */
const describing = ({ method, path, body }: CredentialRequest): Attributes => [
  ['capability[]', 'authtype'],
  ['method', method],
  ['path', path.replace(/^\//, '')],
  ...(body === undefined ? [] : [['body_sha256', createHash('sha256').update(body).digest('hex')] as const]),
]

/** The headers of an answer: `header=Name: value`, `authtype` and `credential`, or `username` and `password`. */
function headersOf(answer: Attributes): Record<string, string> {
  const { quit = '', authtype, credential, username, password } = Object.fromEntries(answer) as Record<string, string | undefined>
  if (isTrue(quit)) throw helperFailed('has no credential for this server')
  const own = answer.filter(([name]) => name === 'header' || name === 'header[]').map(([, value]) => ownHeader(value))
  return {
    ...(authtype !== undefined && credential !== undefined
      ? { authorization: sendable(`${authtype} ${credential}`) }
      : password === undefined
        ? {}
        : username === undefined || username === ''
          ? credentialHeaders(sendable(password))
          : { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }),
    ...Object.fromEntries(own),
  }
}

function ownHeader(text: string): [name: string, value: string] {
  try {
    return headerIn(text)
  } catch {
    throw helperFailed('answers with a header that svc cannot send')
  }
}

function sendable(value: string): string {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) throw helperFailed('answers with a character that no header can contain')
  return value
}

/** A helper can ask a person, so it has long. */
const HELPER_MS = 120_000
const MOST_BYTES = 65_536

/** Runs the helper without a shell. Its answer is secret: no error contains it. Its standard error goes to the terminal. */
async function runHelper(
  [file = '', ...args]: readonly string[],
  operation: 'get' | 'erase',
  question: Attributes,
  signal?: AbortSignal
): Promise<Attributes> {
  const limit = AbortSignal.timeout(HELPER_MS)
  const child = spawn(file, [...args, operation], {
    stdio: ['pipe', 'pipe', 'inherit'],
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
    killSignal: 'SIGKILL',
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    if (text.length > MOST_BYTES) child.kill('SIGKILL')
  })
  child.stdin.on('error', () => {}) // a helper need not read its input
  child.stdin.end(`${question.map(([name, value]) => `${name}=${oneLineOf(value)}\n`).join('')}\n`)
  const [code] = (await once(child, 'close').catch((error: unknown) => {
    signal?.throwIfAborted()
    throw helperFailed(limit.aborted ? `did not end within ${HELPER_MS} ms` : `cannot start: ${codeOf(error) ?? 'unknown'}`)
  })) as [number | null]
  if (code !== 0) throw helperFailed(text.length > MOST_BYTES ? 'writes too much' : `ended with ${code ?? 'a signal'}`)
  return attributesIn(text)
}

/** A line break would add an attribute. */
function oneLineOf(value: string): string {
  if (/[\n\r\0]/.test(value)) throw helperFailed('cannot be asked about an address with a line break')
  return value
}

function attributesIn(text: string): Attributes {
  const [block = ''] = text.replaceAll('\r\n', '\n').split('\n\n')
  return block.split('\n').flatMap(line => {
    const at = line.indexOf('=')
    return at < 1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const]
  })
}
