import { createHmac, timingSafeEqual } from 'node:crypto'
import { svcError } from '@svc/core'

/** @typedef {import('@svc/core/contracts').AuthScheme} AuthScheme */
/** @typedef {import('@svc/core/contracts').Counts} Counts */
/** @typedef {import('@svc/core/contracts').CredentialRequest} CredentialRequest */
/** @typedef {{ secret: string | undefined, variable: string, scopes: readonly string[] }} Key */
/** @typedef {{ keys: ReadonlyMap<string, Key>, windowMs: number, counts: Counts }} SignedOptions */

const ID = 'x-signed-key'
const TIME = 'x-signed-time'
const NONCE = 'x-signed-nonce'
const SIGNATURE = 'x-signed-signature'
const LEAST_SECRET = 32

/** One error for all reasons. It repeats nothing of the credential. */
const rejected = () => svcError('AUTHENTICATION_FAILED', 'the signature is invalid, expired or used before')

/** The signed text. Clients build the same. @type {(request: CredentialRequest, digest: string) => string} */
const signedText = ({ method, path, query, headers }, digest) =>
  [headers[TIME], headers[NONCE], method, path, query, digest].join('\n')

/** Compares in constant time. @type {(secret: string, text: string, hex: string) => boolean} */
function isSignature(secret, text, hex) {
  const expected = createHmac('sha256', secret).update(text).digest()
  const given = Buffer.from(hex, 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** The parts of the credential, if each has the right form. @type {(headers: CredentialRequest['headers']) => { id: string, nonce: string, signature: string, time: number }} */
function readHeaders(headers) {
  const [id = '', seconds = '', nonce = '', signature = ''] = [ID, TIME, NONCE, SIGNATURE].map(name => headers[name])
  const isWellFormed = /^\d{1,12}$/.test(seconds) && /^[\w-]{16,64}$/.test(nonce) && /^[0-9a-f]{64}$/.test(signature)
  if (!isWellFormed) throw rejected()
  return { id, nonce, signature, time: Number(seconds) * 1000 }
}

/** Authenticates requests with an HMAC over time, nonce, method, path, query and the digest of the body. @type {(options: SignedOptions) => AuthScheme} */
export const createSigned = ({ keys, windowMs, counts }) => ({
  headers: [ID, TIME, NONCE, SIGNATURE],
  challenge: 'Signed',
  shown: { type: 'apiKey', in: 'header', name: SIGNATURE, description: `HMAC-SHA-256, with ${ID}, ${TIME} and ${NONCE}.` },
  async prepare() {
    for (const [id, { secret = '', variable }] of keys)
      if (secret.length < LEAST_SECRET)
        throw svcError(
          'SIGNED_SECRET_MISSING',
          `the secret of the key ${id} is missing or shorter than ${LEAST_SECRET} characters`,
          {
            hint: `Set the environment variable ${variable}, for example to the output of: openssl rand -hex 32`,
          }
        )
  },
  async authenticate(request, ctx) {
    const { headers, bodyDigest, isRecheck } = request
    if (headers[SIGNATURE] === undefined) return undefined
    const { id, nonce, signature, time } = readHeaders(headers)
    // The server checks an open event stream again, which can be older than the window.
    if (!isRecheck && Math.abs(Date.now() - time) > windowMs) throw rejected()
    const key = keys.get(id)
    if (!key?.secret) throw rejected()
    if (!bodyDigest) return { needs: 'sha256' }
    if (!isSignature(key.secret, signedText(request, bodyDigest.hex), signature)) throw rejected()
    // Counts the nonce once, over all workers. The counts forget it when its time is outside of the window anyway.
    if (!isRecheck && !(await counts.count(`signed/${id}/${nonce}`, [{ ms: 2 * windowMs, limit: 1 }], ctx)).counted)
      throw rejected()
    return { id: `signed:${id}`, scopes: [...key.scopes] }
  },
})
