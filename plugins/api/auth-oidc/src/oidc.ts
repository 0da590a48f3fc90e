import { codeOf, type Log, type CallContext } from '@svc/core'
import { type AuthScheme, CREDENTIAL_HEADERS } from '@svc/core/contracts'
import { credentialIn } from '@svc/plugin-kit'
import { type CryptoKey, decodeJwt, decodeProtectedHeader, type JWTPayload, jwtVerify, type JWTVerifyGetKey } from 'jose'
import { issuerUnavailable, tokenRefused } from './errors.ts'
import { createKeys, KEY_TIMES, type IssuerKeys, type KeyTimes } from './keys.ts'

export interface OidcOptions {
  readonly issuer: string
  readonly audience: string
  readonly jwksUri: string | undefined
  readonly scopeClaim: string
  readonly log: Log
  /** The context for work outside a request. */
  readonly lasting: CallContext
  readonly times?: KeyTimes
}

/** Only signatures with a public key. `none` is unsafe, and the secret of HS* would be the public key. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
const CLOCK_SECONDS = 30
const LONGEST = 16_384

/** A JWT begins with `{"` in base64url and has dots. Tokens of svc have none. */
const JWT = /^ey[\w-]*\./i

/** Creates the scheme for tokens of an issuer. The server also starts while the issuer is unreachable. */
export function createOidc(parts: OidcOptions): AuthScheme {
  const { issuer, scopeClaim, log, lasting, jwksUri, times = KEY_TIMES } = parts
  const keys = createKeys({ source: { issuer, jwksUri }, times, log, signal: lasting.signal })
  return {
    headers: CREDENTIAL_HEADERS.names,
    challenge: 'Bearer realm="svc"',
    issuer,
    shown: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: `An access token of ${issuer}. It has scopes.` },
    async prepare() {
      keys.current(lasting.signal).catch(() => {}) // `createKeys` has logged the failure
    },
    async authenticate({ headers }, ctx) {
      const token = credentialIn(headers)
      if (token === undefined || !JWT.test(token)) return undefined
      ctx.signal.throwIfAborted()
      const payload = await verify(token, keys, parts, ctx)
      const id = idIn(payload, issuer)
      if (id === undefined) throw tokenRefused()
      return { id, scopes: scopesIn(payload, scopeClaim), expires: (payload.exp! + CLOCK_SECONDS) * 1000 }
    },
  }
}

async function verify(token: string, keys: IssuerKeys, parts: OidcOptions, ctx: CallContext): Promise<JWTPayload> {
  try {
    if (!isForUs(token, parts)) throw tokenRefused()
    return await checked(token, await keyFinder(keys, ctx.signal), parts)
  } catch (error) {
    if (ctx.signal.aborted || codeOf(error) === 'UNAVAILABLE') throw error
    parts.log.debug({ reason: codeOf(error) ?? 'malformed' }, 'refused an access token')
    throw codeOf(error) === 'ERR_JWKS_INVALID' ? issuerUnavailable(error, KEY_TIMES.pause) : tokenRefused()
  }
}

/** Checks the unverified claims, before the server fetches keys or verifies a signature. */
function isForUs(token: string, { issuer, audience }: OidcOptions): boolean {
  if (token.length > LONGEST || !ALGORITHMS.includes(decodeProtectedHeader(token).alg ?? '')) return false
  const { iss, aud, exp = 0 } = decodeJwt(token)
  return iss === issuer && [aud].flat().includes(audience) && exp > Date.now() / 1000 - CLOCK_SECONDS
}

/** Returns a key lookup that fetches the keys again if one is missing. */
async function keyFinder(keys: IssuerKeys, signal: AbortSignal): Promise<JWTVerifyGetKey> {
  const known = await keys.current(signal)
  return async (header, token) => {
    try {
      return await known(header, token)
    } catch (error) {
      if (codeOf(error) !== 'ERR_JWKS_NO_MATCHING_KEY') throw error
      const newer = await keys.after(known, signal)
      return newer(header, token)
    }
  }
}

async function checked(token: string, find: JWTVerifyGetKey, { issuer, audience }: OidcOptions): Promise<JWTPayload> {
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

/** Whether several keys match, because the token names none. */
const isAmbiguous = (error: unknown): error is AsyncIterable<CryptoKey> => codeOf(error) === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS'

const unlessForged = (error: unknown): undefined => {
  if (codeOf(error) !== 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED') throw error
}

/** Scopes that a token of an issuer can have. `*` is reserved for the operator of the service. */
const SCOPES: ReadonlySet<string> = new Set(['chat', 'read', 'workflows', 'tools', 'admin'])

/** Returns the known scopes in a token. */
function scopesIn(payload: JWTPayload, claim: string): string[] {
  const value = claimOf(payload, claim)
  const words = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : []
  const known = words.filter((word): word is string => typeof word === 'string' && SCOPES.has(word))
  return [...new Set(known)]
}

/** Returns a claim by its name, which can contain dots, otherwise by its path. */
function claimOf(payload: JWTPayload, claim: string): unknown {
  const steps = Object.hasOwn(payload, claim) ? [claim] : claim.split('.')
  return steps.reduce<unknown>((value, step) => (isTree(value) && Object.hasOwn(value, step) ? value[step] : undefined), payload)
}

const isTree = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null

/** OpenID Connect Core, section 2: a subject has at most 255 ASCII characters. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/

/** Returns the principal id for a token: unique across issuers and tokens of svc. */
function idIn({ sub }: JWTPayload, issuer: string): string | undefined {
  return typeof sub === 'string' && SUBJECT.test(sub) ? `${issuer}#${sub}` : undefined
}
