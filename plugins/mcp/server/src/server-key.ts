import { hash, timingSafeEqual } from 'node:crypto'
import type { Log } from '@svc/core'
import { type AuthScheme, CREDENTIAL_HEADERS } from '@svc/core/contracts'
import { credentialIn, credentialsIn } from '@svc/plugin-kit'
import { keyMissing, keyUnusable, shortKey, twoCredentials } from './errors.ts'
import type { McpServerConfig } from './settings.ts'

interface ServerKeyOptions {
  readonly auth: McpServerConfig['auth']
  readonly env: Readonly<Record<string, string | undefined>>
  /** Receives a warning about a key that can be guessed. */
  readonly log: Pick<Log, 'warn'>
}

const HOLDER = Object.freeze({ id: 'mcp-key', scopes: Object.freeze(['tools']) })

/** Maximum length of a key. Longer credentials are rejected without hashing. */
const MAX_LENGTH = 4096
/** An attacker with ten attempts per minute can guess a shorter key. */
const MIN_SAFE_LENGTH = 16
/** Characters that a header transports unchanged. */
const HEADER_SAFE = /^[\x21-\x7e]+$/

/**
 * Authenticates the key of the MCP server. It ignores other credentials, which other schemes check. It compares
 * digests, because they have the same length, in constant time.
 */
export function createServerKey({ auth, env, log }: ServerKeyOptions): AuthScheme {
  const { required, api_key_env: variable } = auth
  const key = env[variable]?.trim() ?? ''
  const digest = digestOf(key)
  const warning = key !== '' && key.length < MIN_SAFE_LENGTH ? shortKey(variable, MIN_SAFE_LENGTH) : undefined
  const isKey = (given: string) => key !== '' && given.length <= MAX_LENGTH && timingSafeEqual(digestOf(given), digest)
  return {
    guards: 'tools',
    ...(warning ? { doubt: warning } : {}),
    always: required,
    headers: CREDENTIAL_HEADERS.names,
    challenge: 'Bearer realm="svc"',
    shown: {
      type: 'http',
      scheme: 'bearer',
      description: 'The key of the MCP server. You can also send it in X-API-Key or X-Goog-Api-Key.',
    },
    async prepare() {
      if (key === '' && !required) return
      if (key === '') throw keyMissing(variable)
      if (!HEADER_SAFE.test(key) || key.length > MAX_LENGTH) throw keyUnusable(variable, MAX_LENGTH)
      if (warning) log.warn({ variable }, `${warning.message}: ${warning.hint}`)
    },
    async authenticate({ headers }, { signal }) {
      const given = credentialIn(headers)
      if (given === undefined) return undefined
      signal.throwIfAborted()
      if (!isKey(given)) return undefined
      if (isOfOthers(headers.authorization)) throw twoCredentials()
      return { id: HOLDER.id, scopes: [...HOLDER.scopes] }
    },
  }
}

/** Whether the header has a credential of another kind than a key or token, such as `Basic`. */
const isOfOthers = (authorization: string | undefined) =>
  authorization !== undefined && credentialsIn({ authorization }).length === 0

const digestOf = (text: string) => hash('sha256', text, 'buffer')
