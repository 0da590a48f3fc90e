import { setTimeout as sleep } from 'node:timers/promises'
import { hash, randomBytes } from 'node:crypto'
import { type CallContext, codeOf } from '@svc/core'
import type { Json, RangeQuery, Space, Store, StoreRecord, TokenInfo } from '@svc/core/contracts'
import { tokenUnknown } from './errors.ts'

/** The properties of a new token. */
interface TokenOptions {
  /** The name of its holder. Default: the id of the token. */
  readonly name?: string
  readonly scopes: readonly string[]
  readonly ttlMs: number
}

/** A token in the store. */
export interface StoredToken {
  readonly digest: string
  readonly version: number
  readonly record: TokenRecord
}

/** Milliseconds after which a worker reads a token again. */
export const FRESH_MS = 500
/** Allowed difference between the clocks of two processes over `FRESH_MS`. */
const SLACK_MS = 50
/** Milliseconds for which an expired token is still listed. */
const LISTED_MS = 30 * 86_400_000
const PAGE = 1000

/** The tokens in the store. The store has only their digests. */
export interface AccessTokens {
  /** Creates the space in the store if it is missing. */
  open(ctx: CallContext): Promise<void>
  /** Creates a token and returns its text, which the store does not keep. Deletes tokens that expired long ago. */
  make(options: TokenOptions, ctx: CallContext): Promise<{ readonly token: string; readonly shown: TokenInfo }>
  find(digest: string, ctx: CallContext): Promise<StoredToken | undefined>
  /** Yields each time that tokens are revoked, from now on. */
  revocations(ctx: CallContext): AsyncIterable<null>
  /** Returns the tokens, sorted by name, then by age. */
  list(ctx: CallContext): Promise<TokenInfo[]>
  /** Stores the time of use, unless the token was changed or deleted. */
  note(token: StoredToken, ctx: CallContext): Promise<void>
  /** Revokes the tokens with this name or id. Resolves when no worker accepts them any more. Throws TOKEN_UNKNOWN. */
  revoke(nameOrId: string, ctx: CallContext): Promise<TokenInfo[]>
}

export function createTokens(store: Store): AccessTokens {
  return {
    async open(ctx) {
      await store.open(SPACE, ctx)
    },
    make: (options, ctx) => make(store, options, ctx),
    async find(digest, ctx) {
      const stored = await store.get(COLLECTION, digest, ctx)
      return stored && isValid(stored) ? { digest, version: stored.version, record: recordOf(stored) } : undefined
    },
    async *revocations(ctx) {
      for await (const { value } of store.watch(COLLECTION, ctx)) if (value === undefined || !isValid({ value })) yield null
    },
    async list(ctx) {
      const all = await allOf(store, { index: 'by_name', limit: PAGE }, ctx)
      return all
        .filter(isValid)
        .map(shown)
        .sort((a, b) => compare(a.name, b.name) || compare(a.created, b.created))
    },
    async note({ digest, version, record }, ctx) {
      const value = asJson({ ...record, used: new Date().toISOString() })
      const put = { op: 'put' as const, collection: COLLECTION, key: digest, value, ifVersion: version }
      await store.batch([put], {}, ctx).catch(unlessConflict)
    },
    async revoke(nameOrId, ctx) {
      const records = (await named(store, nameOrId, ctx)).filter(isValid)
      if (records.length === 0) throw tokenUnknown(nameOrId)
      await mark(store, records, ctx)
      // No worker trusts a cached token for longer than this, even a busy or suspended worker. So no worker must confirm.
      await sleep(FRESH_MS + SLACK_MS, undefined, { signal: ctx.signal })
      return records.map(shown)
    },
  }
}

const isValid = (storeRecord: Pick<StoreRecord, 'value'>) => recordOf(storeRecord).revoked === undefined
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

const unlessConflict = (error: unknown) => {
  if (codeOf(error) !== 'STORE_CONFLICT') throw error
}

async function make(store: Store, { name, scopes, ttlMs }: TokenOptions, ctx: CallContext) {
  const now = Date.now()
  const old = { index: 'by_expires', to: new Date(now - LISTED_MS).toISOString(), limit: PAGE }
  await remove(store, await allOf(store, old, ctx), ctx)
  const token = makeToken()
  const digest = digestOf(token)
  const id = idOf(digest)
  const created = new Date(now).toISOString()
  const record = { name: name ?? id, scopes, created, expires: new Date(now + ttlMs).toISOString() }
  await store.batch([{ op: 'put', collection: COLLECTION, key: digest, value: asJson(record), ifVersion: 0 }], {}, ctx)
  return { token, shown: { id, ...record } }
}

async function named(store: Store, nameOrId: string, ctx: CallContext): Promise<StoreRecord[]> {
  const begin = digestBegin(nameOrId)
  // `g` comes after every digit of a digest
  if (begin !== undefined) return allOf(store, { from: begin, to: `${begin}g`, limit: PAGE }, ctx)
  return allOf(store, { index: 'by_name', equals: [nameOrId], limit: PAGE }, ctx)
}

async function mark(store: Store, records: readonly StoreRecord[], ctx: CallContext): Promise<void> {
  const revoked = new Date().toISOString()
  const ops = records.map(record => {
    return { op: 'put' as const, collection: COLLECTION, key: record.key, value: asJson({ ...recordOf(record), revoked }) }
  })
  await store.batch(ops, {}, ctx)
}

async function remove(store: Store, records: readonly StoreRecord[], ctx: CallContext): Promise<void> {
  const ops = records.map(({ key }) => ({ op: 'delete' as const, collection: COLLECTION, key }))
  if (ops.length > 0) await store.batch(ops, {}, ctx)
}

async function allOf(store: Store, query: RangeQuery, ctx: CallContext): Promise<StoreRecord[]> {
  const all: StoreRecord[] = []
  for (let page = await store.range(COLLECTION, query, ctx); ; ) {
    all.push(...page.records)
    if (page.next === undefined) return all
    page = await store.range(COLLECTION, { ...query, cursor: page.next }, ctx)
  }
}

/** The record of a token; its key is the digest. Times are ISO 8601. */
interface TokenRecord {
  readonly name: string
  readonly scopes: readonly string[]
  readonly created: string
  readonly expires: string
  /** Time of the last use, accurate to about a minute. */
  readonly used?: string
  /** Time of the revocation. The token is invalid since then. */
  readonly revoked?: string
}

/** The topic on which commands announce changes to a worker of the running server. */
export const TOPIC = 'auth-bearer'
/** The type of the event, and the token. */
export interface TokenChange {
  readonly type: string
  readonly token: TokenInfo
}

export const COLLECTION = 'auth_tokens'

const SPACE: Space = {
  name: 'auth_tokens',
  version: 1,
  // The record of a revoked token stays, so that restoring an older backup does not make the token valid again.
  collections: { [COLLECTION]: { indexes: { by_name: ['name'], by_expires: ['expires'] }, watched: true, lasting: true } },
}

const asJson = (record: TokenRecord): Json => ({ ...record })
const recordOf = ({ value }: Pick<StoreRecord, 'value'>): TokenRecord => value as unknown as TokenRecord
const shown = (storeRecord: StoreRecord): TokenInfo => ({ id: idOf(storeRecord.key), ...recordOf(storeRecord) })

/** The prefix of every token. */
const PREFIX = 'svc_'
const BYTES = 32
const FORM = /^svc_[A-Za-z0-9_-]{43}$/

/** Returns a new random token. */
const makeToken = (): string => PREFIX + randomBytes(BYTES).toString('base64url')

/** Whether the text has the form of a token of svc. */
export const isToken = (text: string): boolean => FORM.test(text)

/**
 * Returns the SHA-256 of a token, which the store has instead of the token. It needs no salt, because a token is random. Lookups use the digest, so the time of a
 * comparison reveals nothing about a token.
 */
export const digestOf = (token: string): string => hash('sha256', token)

const ID_DIGITS = 12
/** The id of a token, which people can type: the beginning of its digest. */
const idOf = (digest: string): string => `tok_${digest.slice(0, ID_DIGITS)}`

/** Returns the beginning of the digest for an id. */
const digestBegin = (id: string): string | undefined => /^tok_([0-9a-f]{12})$/.exec(id)?.[1]

/** Whether a credential begins like a token of svc. */
export const isLikeToken = (credential: string): boolean => credential.slice(0, PREFIX.length).toLowerCase() === PREFIX
