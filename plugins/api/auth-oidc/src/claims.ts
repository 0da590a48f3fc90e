import type { JWTPayload } from 'jose'

/** What a principal of an issuer may be given. `*` is none: it is for those who run the service. */
const SCOPES: ReadonlySet<string> = new Set(['chat', 'read', 'workflows', 'tools', 'admin'])

/** The scopes of ours that a token names. */
export function scopesIn(payload: JWTPayload, claim: string): string[] {
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
export function idIn({ sub }: JWTPayload, issuer: string): string | undefined {
  return typeof sub === 'string' && SUBJECT.test(sub) ? `${issuer}#${sub}` : undefined
}
