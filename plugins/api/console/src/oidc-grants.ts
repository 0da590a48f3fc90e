import { hkdfSync } from 'node:crypto'
import { type CallContext, codeOf, type Log, systemContext } from '@svc/core'
import type { CredentialHolder, Space, Store } from '@svc/core/contracts'
import type { IssuerTokens, OidcClient } from './oidc-client.ts'
import { decrypt, digestOf, encrypt, FRESH_MS, prune, random, SESSION_MS } from './session.ts'

const GRANTS = 'console_grants'
const USED = 'console_logins'
const BY_UNTIL = { indexes: { by_until: ['until'] } }

export const OIDC_SPACE: Space = { name: 'console_oidc', version: 1, collections: { [GRANTS]: BY_UNTIL, [USED]: BY_UNTIL } }

/** The credential of a session whose tokens lie in the store. */
const REFERENCE = /^oidc\.[A-Za-z0-9_-]{43}$/
export const isReference = (credential: string): boolean => REFERENCE.test(credential)

/** Tokens of the issuer that belong to a session. */
export interface Grant {
  /** The token that the scheme of the issuer accepts. */
  readonly token: string
  readonly refresh: string | undefined
  /** The principal. It never changes. */
  readonly id: string
  /** When the scheme stops accepting the token: Unix time in milliseconds. */
  readonly expires: number
}

/**
 * Tokens of sessions that began at the issuer. Browsers store at most 4 KiB in a cookie, and all tabs and workers need the refreshed
 * token, so the tokens lie in the store, sealed with a key that only the cookie contains.
 */
export interface Grants {
  /** Returns the credential for the cookie, and when the session ends. */
  create(grant: Grant, ctx: CallContext): Promise<{ readonly credential: string; readonly expires: number }>
  /** The token of a session, refreshed if it has expired. `undefined`: the session is over. Throws UNAVAILABLE. */
  token(credential: string, ctx: CallContext): Promise<string | undefined>
  /** Deletes the tokens, and revokes the refresh token at the issuer. */
  remove(credential: string, ctx: CallContext): Promise<void>
  /** Uses a begun login up. False: it was used before. */
  use(login: string, until: number, ctx: CallContext): Promise<boolean>
}

interface GrantsOptions {
  readonly store: Store
  readonly client: Pick<OidcClient, 'refresh' | 'revoke'>
  /** Finds the proof that the scheme of the issuer accepts. */
  readonly holderOf: (tokens: IssuerTokens, ctx: CallContext) => Promise<{ token: string; holder: CredentialHolder } | undefined>
  readonly log: Log
  /** For work that a leaving client must not interrupt: an issuer accepts a refresh token once. */
  readonly signal: AbortSignal
}

/** The scheme accepts a token so long after its end, because clocks differ. In this time it is refreshed. */
const CLOCK_MS = 30_000
const REFRESH_LEASE = { ttlMs: 15_000, waitMs: 8_000 }
const MOST_REMEMBERED = 1_000

export function createGrants(options: GrantsOptions): Grants {
  const { store, client } = options
  const remembered = new Map<string, { readonly grant: Grant; readonly at: number }>()
  const refresh = createRefresh(options)
  return {
    async create(grant, ctx) {
      await prune(store, { collection: GRANTS, index: 'by_until' }, ctx)
      const credential = `oidc.${random(32)}`
      const latest = Date.now() + SESSION_MS
      const expires = grant.refresh === undefined ? Math.min(grant.expires, latest) : latest
      await write(store, credential, { grant, until: expires, version: 0 }, ctx)
      return { credential, expires }
    },
    async token(credential, ctx) {
      const known = remembered.get(credential)
      const at = performance.now()
      const grant = known && at - known.at < FRESH_MS ? known.grant : (await read(store, credential, ctx))?.grant
      if (!grant) return undefined
      if (remembered.size >= MOST_REMEMBERED) remembered.clear()
      remembered.set(credential, { grant, at })
      if (!isOld(grant)) return grant.token
      try {
        const next = await refresh(credential)
        remembered.delete(credential)
        return next?.token
      } catch (error) {
        // the issuer does not answer: what it said last holds as long as it said
        if (grant.expires > Date.now()) return grant.token
        throw error
      }
    },
    async remove(credential, ctx) {
      const stored = await read(store, credential, ctx)
      remembered.delete(credential)
      await drop(store, credential, ctx)
      if (stored?.grant.refresh !== undefined) client.revoke(stored.grant.refresh).catch(() => {})
    },
    async use(login, until, ctx) {
      await prune(store, { collection: USED, index: 'by_until' }, ctx)
      const put = { op: 'put', collection: USED, key: digestOf(login), value: { until }, ifVersion: 0 } as const
      return store.batch([put], {}, ctx).then(() => true, unlessConflict)
    },
  }
}

/** Refreshes a grant whose token has expired. One worker does; the others read what it got. */
function createRefresh({ store, client, holderOf, log, signal }: GrantsOptions) {
  const lasting = systemContext(signal, 'console')
  const running = new Map<string, Promise<Grant | undefined>>()
  const renewed = async ({ refresh, id }: Grant): Promise<Grant | undefined> => {
    const tokens = await client.refresh(refresh!)
    const found = await holderOf(tokens, lasting)
    if (found?.holder.id !== id) return undefined
    return { token: found.token, refresh: tokens.refresh, id, expires: found.holder.expires ?? Date.now() + SESSION_MS }
  }
  const underLease = async (credential: string): Promise<Grant | undefined> => {
    const stored = await read(store, credential, lasting)
    if (!stored || !isOld(stored.grant)) return stored?.grant
    const grant = await renewed(stored.grant).catch(ifRefused)
    if (!grant) {
      log.debug({ principal: stored.grant.id }, 'the issuer refreshes a session of the console no more')
      await drop(store, credential, lasting)
      return undefined
    }
    const isKept = await write(store, credential, { ...stored, grant }, lasting).then(() => true, unlessConflict)
    if (isKept) return grant
    // the session has ended meanwhile
    await client.revoke(grant.refresh!).catch(() => {})
    return undefined
  }
  const once = async (credential: string) => {
    const request = { holder: `console/${crypto.randomUUID()}`, ...REFRESH_LEASE }
    const lease = await store.acquire(`console_grant/${digestOf(credential)}`, request, lasting)
    return underLease(credential).finally(() => store.release(lease, lasting))
  }
  return (credential: string): Promise<Grant | undefined> => {
    const refreshed = running.get(credential) ?? once(credential).finally(() => running.delete(credential))
    running.set(credential, refreshed)
    return refreshed
  }
}

/** A grant as the store has it. */
interface StoredGrant {
  readonly grant: Grant
  readonly until: number
  readonly version: number
}

async function read(store: Store, credential: string, ctx: CallContext): Promise<StoredGrant | undefined> {
  const record = await store.get(GRANTS, digestOf(credential), ctx)
  if (!record) return undefined
  const { sealed, until } = record.value as { readonly sealed: string; readonly until: number }
  const text = until > Date.now() ? decrypt(sealed, keyOf(credential), GRANTS) : undefined
  return text === undefined ? undefined : { grant: JSON.parse(text) as Grant, until, version: record.version }
}

async function write(store: Store, credential: string, { grant, until, version }: StoredGrant, ctx: CallContext): Promise<void> {
  const value = { until, sealed: encrypt(JSON.stringify(grant), keyOf(credential), GRANTS) }
  await store.batch([{ op: 'put', collection: GRANTS, key: digestOf(credential), value, ifVersion: version }], {}, ctx)
}

async function drop(store: Store, credential: string, ctx: CallContext): Promise<void> {
  await store.batch([{ op: 'delete', collection: GRANTS, key: digestOf(credential) }], {}, ctx)
}

const isOld = ({ refresh, expires }: Grant) => refresh !== undefined && Date.now() >= expires - CLOCK_MS

const keyOf = (credential: string) => new Uint8Array(hkdfSync('sha256', credential, '', 'svc.console.grant', 32))

function ifRefused(error: unknown): undefined {
  if (codeOf(error) !== 'AUTHENTICATION_FAILED') throw error
}

function unlessConflict(error: unknown): false {
  if (codeOf(error) !== 'STORE_CONFLICT') throw error
  return false
}
