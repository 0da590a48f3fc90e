import { hash, timingSafeEqual } from 'node:crypto'
import type { Log } from '@svc/core'
import type { AuthScheme } from '@svc/core/contracts'
import { keyMissing, keyUnusable, shortKey, twoCredentials } from './problems.ts'
import type { McpServerConfig } from './settings.ts'

/** Where the key stands: the name of a variable and the environment that has it. */
export interface ServerKeyParts {
  readonly auth: McpServerConfig['auth']
  readonly env: Readonly<Record<string, string | undefined>>
  /** Hears of a key that can be guessed. */
  readonly log: Pick<Log, 'warn'>
}

const HOLDER = Object.freeze({ id: 'mcp-key', scopes: Object.freeze(['tools']) })

/** No key is longer, so that what is longer need not be hashed to be told apart. */
const LONGEST = 4096
/** Whoever may ask ten times a minute finds a shorter one sooner or later. */
const SHORT = 16
/** What a header carries unchanged. */
const FIT = /^[\x21-\x7e]+$/

/**
 * Knows the holder of the tool server's key, in `Authorization: Bearer` and in `X-API-Key`. Of any other credential it says nothing: it may be good for the
 * whole server. Kept and compared are digests: equal in length, in constant time.
 */
export function createServerKey({ auth, env, log }: ServerKeyParts): AuthScheme {
  const { required, api_key_env: variable } = auth
  const key = env[variable]?.trim() ?? ''
  const digest = digestOf(key)
  const doubt = key !== '' && key.length < SHORT ? shortKey(variable, SHORT) : undefined
  const isKey = (given: string) => key !== '' && given.length <= LONGEST && timingSafeEqual(digestOf(given), digest)
  return {
    guards: 'tools',
    ...(doubt ? { doubt } : {}),
    always: required,
    headers: ['authorization', 'x-api-key'],
    challenge: 'Bearer realm="svc"',
    shown: { type: 'http', scheme: 'bearer', description: 'The key of the tool server; X-API-Key may carry it as well.' },
    async prepare() {
      if (key === '' && !required) return
      if (key === '') throw keyMissing(variable)
      if (!FIT.test(key) || key.length > LONGEST) throw keyUnusable(variable, LONGEST)
      if (doubt) log.warn({ variable }, `${doubt.message}: ${doubt.hint}`)
    },
    async authenticate({ headers }, { signal }) {
      const { 'x-api-key': plain, authorization } = headers
      const given = [plain, authorization === undefined ? undefined : (BEARER.exec(authorization)?.[1] ?? '')]
      const fits = given.filter(one => one !== undefined).map(isKey)
      signal.throwIfAborted()
      if (!fits.includes(true)) return undefined
      if (fits.includes(false)) throw twoCredentials()
      return { id: HOLDER.id, scopes: [...HOLDER.scopes] }
    },
  }
}

const BEARER = /^bearer +(\S.*)$/i

const digestOf = (text: string) => hash('sha256', text, 'buffer')
