import { hash, timingSafeEqual } from 'node:crypto'
import type { Log } from '@svc/core'
import { type AuthScheme, CREDENTIAL_HEADERS } from '@svc/core/contracts'
import { credentialIn } from '@svc/plugin-kit'
import { keyMissing, keyUnusable, keyGuessable } from './errors.ts'

/** The name of the environment variable with the key, and the environment. */
interface ApiKeyOptions {
  readonly variable: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Gets a warning if the key is easy to guess. */
  readonly log: Pick<Log, 'warn'>
}

const HOLDER = Object.freeze({ id: 'api-key', scopes: Object.freeze(['*']) })

/** Maximum length of a key. The server refuses a longer text without hashing it. */
const LONGEST = 4096
/** An attacker with ten attempts a minute can find a shorter key. */
const SHORT = 16
/** Words that attackers try first and that examples contain. */
const WELL_KNOWN =
  /change.?(me|this|it)|replace.?(me|this|with)|pass.?w(or|0r)d|(api|my|your|the|secret).?key|(my|your|top|super).?secret|example|default|place.?holder|insert|letmein|qwerty|admin|123456789|abcdefgh/gi
const REPETITION = /(.{1,16}?)\1{2,}/g
/** Characters that a header carries unchanged. */
const FIT = /^[\x21-\x7e]+$/

/**
 * Creates the scheme for the API key. It compares digests, which have equal length, in constant time. A key has no form of its own, so another value can belong to
 * another scheme: the server refuses a value that no scheme knows.
 */
export function createApiKey({ variable, env, log }: ApiKeyOptions): AuthScheme {
  const key = env[variable]?.trim() ?? ''
  const digest = digestOf(key)
  const isKey = (text: string) => key !== '' && text !== '' && text.length <= LONGEST && timingSafeEqual(digestOf(text), digest)
  const doubt = isGuessable(key) ? keyGuessable(variable, SHORT) : undefined
  return {
    ...(doubt ? { doubt } : {}),
    headers: CREDENTIAL_HEADERS.names,
    challenge: 'ApiKey header="X-API-Key"',
    shown: {
      type: 'apiKey',
      in: 'header',
      name: 'X-API-Key',
      description: 'The key of the server. It has all scopes. You can also send it in Authorization: Bearer or X-Goog-Api-Key.',
    },
    async prepare() {
      if (key === '') throw keyMissing(variable)
      if (!FIT.test(key) || key.length > LONGEST) throw keyUnusable(variable, LONGEST)
      if (doubt) log.warn({ variable }, `${doubt.message}; ${doubt.hint}`)
    },
    async authenticate({ headers }, { signal }) {
      const given = credentialIn(headers)
      if (given === undefined) return undefined
      signal.throwIfAborted()
      return isKey(given) ? HOLDER : undefined
    },
  }
}

const isGuessable = (key: string) => key.replaceAll(WELL_KNOWN, '').replaceAll(REPETITION, '$1').length < SHORT

const digestOf = (text: string) => hash('sha256', text, 'buffer')
