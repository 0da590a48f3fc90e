import { hash, timingSafeEqual } from 'node:crypto'
import type { Log } from '@svc/core'
import type { AuthScheme } from '@svc/core/contracts'
import { keyMisplaced, keyMissing, keyRefused, keyUnusable, keyGuessable } from './errors.ts'

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

/** Creates the scheme for the API key. It compares digests, which have equal length, in constant time. */
export function createApiKey({ variable, env, log }: ApiKeyOptions): AuthScheme {
  const key = env[variable]?.trim() ?? ''
  const digest = digestOf(key)
  const isKey = (text: string) => key !== '' && text !== '' && text.length <= LONGEST && timingSafeEqual(digestOf(text), digest)
  const doubt = isGuessable(key) ? keyGuessable(variable, SHORT) : undefined
  return {
    ...(doubt ? { doubt } : {}),
    // `authorization`, to refuse a key in place of a token with a helpful message
    headers: ['x-api-key', 'authorization'],
    challenge: 'ApiKey header="X-API-Key"',
    shown: {
      type: 'apiKey',
      in: 'header',
      name: 'X-API-Key',
      description: 'The key of the server. It has all scopes.',
    },
    async prepare() {
      if (key === '') throw keyMissing(variable)
      if (!FIT.test(key) || key.length > LONGEST) throw keyUnusable(variable, LONGEST)
      if (doubt) log.warn({ variable }, `${doubt.message}; ${doubt.hint}`)
    },
    async authenticate({ headers }, { signal }) {
      const given = headers['x-api-key']
      if (given === undefined && isKey(bearerOf(headers.authorization))) throw keyMisplaced()
      if (given === undefined) return undefined
      signal.throwIfAborted()
      if (!isKey(given)) throw keyRefused()
      return HOLDER
    },
  }
}

/** Returns a key that is sent as a bearer token, as other gateways expect it; empty for tokens of svc. */
const bearerOf = (authorization = '') => /^bearer +(?!svc_)(\S+)$/i.exec(authorization)?.[1] ?? ''

const isGuessable = (key: string) => key.replaceAll(WELL_KNOWN, '').replaceAll(REPETITION, '$1').length < SHORT

const digestOf = (text: string) => hash('sha256', text, 'buffer')
