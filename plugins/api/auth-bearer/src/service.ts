import type { CallContext, Principal } from '@svc/core'
import { API_SCOPES, type TokenInfo, type TokenRequest, type Tokens } from '@svc/core/contracts'
import { adminNeeded, invalid, scopeLacking } from './errors.ts'
import type { AccessTokens } from './tokens.ts'

const NAME = /^(?!tok_)[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/
const [SHORTEST_MS, LONGEST_MS] = [1_000, 3_650 * 86_400_000]

/** What the service reports after a change. */
export interface TokenChanges {
  created(token: TokenInfo, ctx: CallContext): void
  revoked(token: TokenInfo, ctx: CallContext): void
}

/** The service `Tokens`, for routes and commands. */
export function createTokenService(tokens: AccessTokens, changes: TokenChanges): Tokens {
  return {
    async list(ctx) {
      await tokens.open(ctx)
      const all = await tokens.list(ctx)
      const { principal } = ctx
      return has(principal, 'admin') ? all : all.filter(({ name }) => principal.id === `token:${name}`)
    },
    async create(request, ctx) {
      mustAdminister(ctx.principal)
      const options = checked(request, ctx.principal)
      await tokens.open(ctx)
      const { token, shown } = await tokens.make(options, ctx)
      changes.created(shown, ctx)
      return { token, info: shown }
    },
    async revoke(nameOrId, ctx) {
      mustAdminister(ctx.principal)
      await tokens.open(ctx)
      const revoked = await tokens.revoke(nameOrId, ctx)
      for (const token of revoked) changes.revoked(token, ctx)
      return revoked
    },
  }
}

const has = ({ scopes }: Principal, scope: string) => scopes.includes('*') || scopes.includes(scope)

function mustAdminister(principal: Principal): void {
  if (!has(principal, 'admin')) throw adminNeeded()
}

/** The request with its defaults. Arguments can come from another process. Throws INVALID_VALUE, FORBIDDEN. */
function checked({ name, scopes, ttlMs }: TokenRequest, principal: Principal) {
  if (name !== undefined && (typeof name !== 'string' || !NAME.test(name)))
    throw invalid('name', 'must have 1 to 64 of the characters A-Z a-z 0-9 . _ @ - and not begin with tok_')
  if (!Number.isSafeInteger(ttlMs) || ttlMs < SHORTEST_MS || ttlMs > LONGEST_MS)
    throw invalid('ttl', 'must be from 1 second to 3650 days')
  return { ...(name === undefined ? {} : { name }), scopes: scopesOf(scopes, principal), ttlMs }
}

/** In the order of `API_SCOPES`, each once. */
function scopesOf(given: readonly string[] | undefined, principal: Principal): string[] {
  const { names } = API_SCOPES
  if (given === undefined) {
    const usual = names.filter(scope => scope !== 'admin' && has(principal, scope))
    if (usual.length === 0) throw invalid('scopes', 'must be given: the caller has only admin')
    return usual
  }
  const known: readonly unknown[] = names
  if (!Array.isArray(given) || given.length === 0 || !given.every(scope => known.includes(scope)))
    throw invalid('scopes', `must be one or more of ${names.join(', ')}`)
  const lacking = given.find(scope => !has(principal, scope))
  if (lacking !== undefined) throw scopeLacking(lacking)
  return names.filter(scope => given.includes(scope))
}
