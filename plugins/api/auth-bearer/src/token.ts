import { hash, randomBytes } from 'node:crypto'

/** The prefix of every token. */
const PREFIX = 'svc_'
const BYTES = 32
const FORM = /^svc_[A-Za-z0-9_-]{43}$/

/** Returns a new random token. */
export const makeToken = (): string => PREFIX + randomBytes(BYTES).toString('base64url')

/** Whether the text has the form of a token of svc. */
export const isToken = (text: string): boolean => FORM.test(text)

/**
 * Returns the SHA-256 of a token, which the store has instead of the token. It needs no salt, because a token is random. Lookups use the digest, so the time of a
 * comparison reveals nothing about a token.
 */
export const digestOf = (token: string): string => hash('sha256', token)

const ID_DIGITS = 12
/** The id of a token, which people can type: the beginning of its digest. */
export const idOf = (digest: string): string => `tok_${digest.slice(0, ID_DIGITS)}`

/** Returns the beginning of the digest for an id. */
export const digestBegin = (id: string): string | undefined => /^tok_([0-9a-f]{12})$/.exec(id)?.[1]

/** Whether a credential begins like a token of svc. */
export const isLikeToken = (credential: string): boolean => credential.slice(0, PREFIX.length).toLowerCase() === PREFIX
