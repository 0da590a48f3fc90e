import { codeOf, type Log, type CallContext } from '@svc/core'
import type { AuthScheme } from '@svc/core/contracts'
import { type CryptoKey, decodeJwt, decodeProtectedHeader, type JWTPayload, jwtVerify, type JWTVerifyGetKey } from 'jose'
import { issuerUnavailable, tokenRefused } from './errors.ts'
import { createKeys, KEY_TIMES, type Keys, type KeyTimes } from './keys.ts'

export interface OidcParts {
  readonly issuer: string
  readonly audience: string
  readonly jwksUri: string | undefined
  readonly scopeClaim: string
  readonly log: Log
  /** The circumstances of work that no request waits for. */
  readonly lasting: CallContext
  readonly times?: KeyTimes
}

/** Signatures with a public key only: no `none`, and no HS*, whose secret would be the public key. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
const CLOCK_SECONDS = 30
const LONGEST = 16_384

/** Ours have no dot, and a JWT begins with `{"` in base64url. */
const CREDENTIAL = /^bearer +(ey[\w-]*\..*)$/is

/** Knows the holders of an issuer's tokens. Whether the issuer is up matters when its keys are needed, not when the server starts. */
export function createOidc(parts: OidcParts): AuthScheme {
  const { issuer, scopeClaim, log, lasting, jwksUri, times = KEY_TIMES } = parts
  const keys = createKeys({ place: { issuer, jwksUri }, times, log, signal: lasting.signal })
  return {
    headers: ['authorization'],
    challenge: 'Bearer realm="svc"',
    shown: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: `An access token of ${issuer}. It has scopes.` },
    async prepare() {
      keys.current(lasting.signal).catch(() => {}) // it is in the log
    },
    async authenticate({ headers }, ctx) {
      const token = CREDENTIAL.exec(headers.authorization ?? '')?.[1]
      if (token === undefined) return undefined
      ctx.signal.throwIfAborted()
      const payload = await verify(token, keys, parts, ctx)
      const id = idIn(payload, issuer)
      if (id === undefined) throw tokenRefused()
      return { id, scopes: scopesIn(payload, scopeClaim), expires: (payload.exp! + CLOCK_SECONDS) * 1000 }
    },
  }
}

async function verify(token: string, keys: Keys, parts: OidcParts, ctx: CallContext): Promise<JWTPayload> {
  try {
    if (!concerns(token, parts)) throw tokenRefused()
    return await checked(token, await keyFinder(keys, ctx.signal), parts)
  } catch (error) {
    if (ctx.signal.aborted || codeOf(error) === 'UNAVAILABLE') throw error
    parts.log.debug({ reason: codeOf(error) ?? 'malformed' }, 'an access token was refused')
    throw codeOf(error) === 'ERR_JWKS_INVALID' ? issuerUnavailable(error, KEY_TIMES.pause) : tokenRefused()
  }
}

/** Before anything is fetched or computed: a token that says itself that it is not for us. */
function concerns(token: string, { issuer, audience }: OidcParts): boolean {
  if (token.length > LONGEST || !ALGORITHMS.includes(decodeProtectedHeader(token).alg ?? '')) return false
  const { iss, aud, exp = 0 } = decodeJwt(token)
  return iss === issuer && [aud].flat().includes(audience) && exp > Date.now() / 1000 - CLOCK_SECONDS
}

/** A key that is not there may have come meanwhile. */
async function keyFinder(keys: Keys, signal: AbortSignal): Promise<JWTVerifyGetKey> {
  const known = await keys.current(signal)
  return async (header, token) => {
    try {
      return await known(header, token)
    } catch (error) {
      if (codeOf(error) !== 'ERR_JWKS_NO_MATCHING_KEY') throw error
      const younger = await keys.after(known, signal)
      return younger(header, token)
    }
  }
}

async function checked(token: string, find: JWTVerifyGetKey, { issuer, audience }: OidcParts): Promise<JWTPayload> {
  const options = {
    issuer,
    audience,
    algorithms: ALGORITHMS,
    clockTolerance: CLOCK_SECONDS,
    requiredClaims: ['exp', 'sub'],
  }
  try {
    return (await jwtVerify(token, find, options)).payload
  } catch (error) {
    if (!isAmbiguous(error)) throw error
    for await (const key of error) {
      const verified = await jwtVerify(token, key, options).catch(unlessForged)
      if (verified) return verified.payload
    }
    throw tokenRefused()
  }
}

/** The token names no key, and several would do. */
const isAmbiguous = (error: unknown): error is AsyncIterable<CryptoKey> => codeOf(error) === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS'

const unlessForged = (error: unknown): undefined => {
  if (codeOf(error) !== 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED') throw error
}

/** What a principal of an issuer may be given. `*` is none: it is for those who run the service. */
const SCOPES: ReadonlySet<string> = new Set(['chat', 'read', 'workflows', 'tools', 'admin'])

/** The scopes of ours that a token names. */
function scopesIn(payload: JWTPayload, claim: string): string[] {
  const value = claimOf(payload, claim)
  const words = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : []
  const known = words.filter((word): word is string => typeof word === 'string' && SCOPES.has(word))
  return [...new Set(known)]
}

/** A claim by its name, or by its path: names may have dots too. */
function claimOf(payload: JWTPayload, claim: string): unknown {
  const steps = Object.hasOwn(payload, claim) ? [claim] : claim.split('.')
  return steps.reduce<unknown>((value, step) => (isTree(value) && Object.hasOwn(value, step) ? value[step] : undefined), payload)
}

const isTree = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null

/** OpenID Connect Core, section 2: a subject has at most 255 ASCII characters. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/

/** Who the token is about, under a name that no other issuer's and no token of ours can have. */
function idIn({ sub }: JWTPayload, issuer: string): string | undefined {
  return typeof sub === 'string' && SUBJECT.test(sub) ? `${issuer}#${sub}` : undefined
}
