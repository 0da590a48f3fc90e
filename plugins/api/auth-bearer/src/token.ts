import { hash, randomBytes } from 'node:crypto'

/** What every token begins with. */
const PREFIX = 'svc_'
const BYTES = 32
const FORM = /^svc_[A-Za-z0-9_-]{43}$/

/** Returns a new random token. */
export const makeToken = (): string => PREFIX + randomBytes(BYTES).toString('base64url')

/** Whether it could be one of ours. */
export const isToken = (text: string): boolean => FORM.test(text)

/**
 * What is kept in a token's place: its SHA-256. It needs no salt, a token being random; and as what is looked up is the digest, the time that a comparison
 * takes tells nothing of a token.
 */
export const digestOf = (token: string): string => hash('sha256', token)

const ID_DIGITS = 12
/** What people call a token by: the beginning of its digest. */
export const idOf = (digest: string): string => `tok_${digest.slice(0, ID_DIGITS)}`

/** The beginning of a digest that this id stands for. */
export const digestBegin = (id: string): string | undefined => /^tok_([0-9a-f]{12})$/.exec(id)?.[1]

const CREDENTIAL = /^bearer +(svc_.*)$/is
/** The token of an `Authorization` header, if it is of our kind. */
export const tokenIn = (header: string | undefined): string | undefined =>
  header === undefined ? undefined : CREDENTIAL.exec(header)?.[1]
