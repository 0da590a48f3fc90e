import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, codeOf } from '@svc/core'
import type { Json, RangeQuery, Space, Store, StoreRecord } from '@svc/core/contracts'
import { tokenUnknown } from './errors.ts'
import { digestBegin, digestOf, idOf, makeToken } from './token.ts'

/** What a token is to be. */
interface TokenWish {
  /** Who it is for; absent: its id. */
  readonly name?: string
  readonly scopes: readonly string[]
  readonly ttlMs: number
}

/** A token as the store has it. */
export interface FoundToken {
  readonly digest: string
  readonly version: number
  readonly record: TokenRecord
}

/** Milliseconds that what was read of a token counts: after that it is read again. */
export const FRESH_MS = 500
/** Clocks of two processes that count the same half second. */
const SLACK_MS = 50
/** Milliseconds for which an expired token is still listed. */
const KEPT_MS = 30 * 86_400_000
const PAGE = 1000

/** The tokens in the store. Nothing of a token but its digest is kept. */
export interface Tokens {
  /** Makes its space where it is missing. */
  open(ctx: CallContext): Promise<void>
  /** Creates a token and returns its text, which the store does not keep. Deletes tokens that expired long ago. */
  make(wish: TokenWish, ctx: CallContext): Promise<{ readonly token: string; readonly shown: TokenShown }>
  find(digest: string, ctx: CallContext): Promise<FoundToken | undefined>
  /** Tells each time that tokens were taken back, from now on. */
  gone(ctx: CallContext): AsyncIterable<null>
  /** By name, then by age. */
  list(ctx: CallContext): Promise<TokenShown[]>
  /** Notes that it was used now, unless it has gone or changed. */
  note(found: FoundToken, ctx: CallContext): Promise<void>
  /** Takes back those of this name or id; answers once no worker accepts them any more. Throws TOKEN_UNKNOWN. */
  revoke(nameOrId: string, ctx: CallContext): Promise<TokenShown[]>
}

export function createTokens(store: Store): Tokens {
  return {
    async open(ctx) {
      await store.open(SPACE, ctx)
    },
    make: (wish, ctx) => make(store, wish, ctx),
    async find(digest, ctx) {
      const found = await store.get(COLLECTION, digest, ctx)
      return found && isGood(found) ? { digest, version: found.version, record: recordOf(found) } : undefined
    },
    async *gone(ctx) {
      for await (const { value } of store.watch(COLLECTION, ctx)) if (value === undefined || !isGood({ value })) yield null
    },
    async list(ctx) {
      const all = await allOf(store, { index: 'by_name', limit: PAGE }, ctx)
      return all
        .filter(isGood)
        .map(shown)
        .sort((a, b) => compare(a.name, b.name) || compare(a.created, b.created))
    },
    async note({ digest, version, record }, ctx) {
      const value = asJson({ ...record, used: new Date().toISOString() })
      const put = { op: 'put' as const, collection: COLLECTION, key: digest, value, ifVersion: version }
      await store.batch([put], {}, ctx).catch(unlessConflict)
    },
    async revoke(nameOrId, ctx) {
      const found = (await named(store, nameOrId, ctx)).filter(isGood)
      if (found.length === 0) throw tokenUnknown(nameOrId)
      await mark(store, found, ctx)
      // No worker trusts what it read for longer than this, however busy or stopped it was: so none needs to be asked.
      await sleep(FRESH_MS + SLACK_MS, undefined, { signal: ctx.signal })
      return found.map(shown)
    },
  }
}

const isGood = (one: Pick<StoreRecord, 'value'>) => recordOf(one).revoked === undefined
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

const unlessConflict = (error: unknown) => {
  if (codeOf(error) !== 'STORE_CONFLICT') throw error
}

async function make(store: Store, { name, scopes, ttlMs }: TokenWish, ctx: CallContext) {
  const now = Date.now()
  const old = { index: 'by_expires', to: new Date(now - KEPT_MS).toISOString(), limit: PAGE }
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

async function mark(store: Store, found: readonly StoreRecord[], ctx: CallContext): Promise<void> {
  const revoked = new Date().toISOString()
  const ops = found.map(one => {
    return { op: 'put' as const, collection: COLLECTION, key: one.key, value: asJson({ ...recordOf(one), revoked }) }
  })
  await store.batch(ops, {}, ctx)
}

async function remove(store: Store, found: readonly StoreRecord[], ctx: CallContext): Promise<void> {
  const ops = found.map(({ key }) => ({ op: 'delete' as const, collection: COLLECTION, key }))
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

/** What the store keeps of a token, under its digest. Times are ISO 8601. */
interface TokenRecord {
  readonly name: string
  readonly scopes: readonly string[]
  readonly created: string
  readonly expires: string
  /** To the minute, about. */
  readonly used?: string
  /** When it was taken back: it is good for nothing since. */
  readonly revoked?: string
}

/** A token as people see it. */
export interface TokenShown extends TokenRecord {
  readonly id: string
}

export const COLLECTION = 'auth_tokens'

const SPACE: Space = {
  name: 'auth_tokens',
  version: 1,
  // A revoked token stays as a record that says so: restoring a backup of before must not make it good again.
  collections: { [COLLECTION]: { indexes: { by_name: ['name'], by_expires: ['expires'] }, watched: true, lasting: true } },
}

const asJson = (record: TokenRecord): Json => ({ ...record })
const recordOf = ({ value }: Pick<StoreRecord, 'value'>): TokenRecord => value as unknown as TokenRecord
const shown = (one: StoreRecord): TokenShown => ({ id: idOf(one.key), ...recordOf(one) })
