import assert from 'node:assert/strict'
import { type AnyService, codeOf, systemContext, type CallContext } from '@svc/core'
import type { MissingSample } from '../kit-case.ts'
import type { Json, RangeQuery, Space, Store, StoreOp, StoreRecord } from '@svc/core/contracts'

/** A store to test. Disposing removes it with its data. */
export interface StoreUnderTest extends AsyncDisposable {
  readonly store: Store
  /** Closes `store` and opens the same data again. Absent: the data is not durable, and the kit skips these cases. */
  reopen?(): Promise<Store>
  /** Another handle on the same data, as another process would have. Absent: the kit uses the only one twice. */
  second?(): Promise<Store>
  /**
   * Cuts the connection between `store` and its data, with the answers that are on their way; later calls connect again. Absent:
   * there is no connection, and the kit skips these cases.
   */
  cut?(): Promise<void>
  /** A handle on the same data that can only read. Absent: there is none, and the kit skips these cases. */
  readOnly?(): Promise<Store>
  /** Set for a store in another process: it does not see the clock that the kit shifts in this one. */
  readonly hasOtherClock?: boolean
}
export type OpenStore = () => Promise<StoreUnderTest>

/** The environment of a case: the space of the kit, open on both handles. */
export interface Rig {
  readonly store: Store
  readonly ctx: CallContext
  readonly reopen: (() => Promise<Store>) | undefined
  readonly cut: (() => Promise<void>) | undefined
  readonly readOnly: (() => Promise<Store>) | undefined
  readonly hasOtherClock: boolean
  second(): Promise<Store>
  put(collection: string, key: string, value: Json): Promise<number>
  batch(...ops: StoreOp[]): Promise<readonly number[]>
}
/** A case that needs what the store under test does not have returns its name. */
export type StoreCase = readonly [title: string, run: (rig: Rig) => Promise<void | MissingSample>]

/** The space that the cases write to. */
export const KIT = {
  name: 'kit',
  version: 1,
  collections: {
    notes: { indexes: { by_owner: ['owner', 'at'], by_kind: ['meta.kind'] } },
    plain: {},
    watched: { watched: true },
    other_watched: { watched: true },
  },
  logs: ['lines', 'events'],
} satisfies Space

/** Time limit of a case. Its signal then aborts. */
const CASE_MS = 30_000

/** Runs a case on a new store and removes the store. */
export async function rigged(open: OpenStore, run: StoreCase[1]): Promise<void | MissingSample> {
  await using under = await open()
  return await withTimeLimit(async ctx => {
    await under.store.open(KIT, ctx)
    return run(rigOf(under, ctx))
  })
}

/** Runs a case in a context that aborts at its time limit and at its end. */
export async function withTimeLimit<T>(run: (ctx: CallContext) => Promise<T>): Promise<T> {
  const ended = new AbortController()
  const limit = setTimeout(() => ended.abort(new Error(`the case took more than ${CASE_MS} ms`)), CASE_MS)
  try {
    return await run(systemContext(ended.signal))
  } finally {
    clearTimeout(limit)
    ended.abort(new Error('the case has ended'))
  }
}

function rigOf(under: StoreUnderTest, ctx: CallContext): Rig {
  const { store } = under
  const opened = async (handle: Store) => {
    await handle.open(KIT, ctx)
    return handle
  }
  const batch = async (...ops: StoreOp[]) => (await store.batch(ops, {}, ctx)).results
  return {
    store,
    ctx,
    batch,
    cut: under.cut?.bind(under),
    hasOtherClock: under.hasOtherClock === true,
    readOnly: under.readOnly && (async () => opened(await under.readOnly!())),
    reopen: under.reopen && (async () => opened(await under.reopen!())),
    second: async () => opened(under.second ? await under.second() : store),
    put: async (collection, key, value) => (await batch({ op: 'put', collection, key, value }))[0]!,
  }
}

/**
 * Expects a failure with this code and, if given, these details. A value that is not plain can be rejected before it reaches
 * the store.
 */
export async function fails(work: Promise<unknown>, code: string, details?: Record<string, unknown>): Promise<void> {
  const error = await failureOf(work)
  const codes = code === 'STORE_INVALID' ? [code, 'NOT_PLAIN'] : [code]
  assert.ok(codes.includes(codeOf(error) ?? ''), `expected ${code}, was ${String(error)}`)
  assert.ok((error as { hint?: string }).hint, `${code} names no hint`)
  if (details) assert.deepEqual((error as { details?: unknown }).details, details)
}

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work
  } catch (error) {
    return error
  }
  return assert.fail('it did not fail')
}

/** Fetches every record of a range page by page. Checks that only the last page lacks `next` and that no page is too long. */
export async function pages(store: Store, collection: string, query: RangeQuery, ctx: CallContext): Promise<StoreRecord[]> {
  const all: StoreRecord[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await store.range(collection, { ...query, ...(cursor === undefined ? {} : { cursor }) }, ctx)
    assert.ok(page.records.length <= query.limit, 'a page has more records than its limit')
    all.push(...page.records)
    if (page.next === undefined) return all
    assert.notEqual(page.records.length, 0, 'an empty page has a cursor for another page')
    cursor = page.next
  }
}

export const keysOf = (records: readonly StoreRecord[]): string[] => records.map(record => record.key)

/** The handle of a process whose clock is ahead: during its calls, the clock of this process is. */
export function withClockAhead<T extends object>(token: AnyService & { readonly '~service'?: T }, service: T, ms: number): T {
  const { now } = Date
  let calls = 0
  const call = async (work: () => unknown) => {
    if (calls++ === 0) Date.now = () => now.call(Date) + ms
    try {
      return await work()
    } finally {
      if (--calls === 0) Date.now = now
    }
  }
  const methods = Object.entries(token.methods).map(([name, kind]) => {
    const method = (...args: unknown[]) => Reflect.apply(Reflect.get(service as object, name), service, args) as unknown
    return [name, kind === 'stream' ? method : (...args: unknown[]) => call(() => method(...args))]
  })
  return Object.fromEntries(methods) as T
}

/** A context that the case can abort. */
export function abortable(ctx: CallContext): { readonly ctx: CallContext; abort(): void } {
  const controller = new AbortController()
  return { ctx: { ...ctx, signal: AbortSignal.any([ctx.signal, controller.signal]) }, abort: () => controller.abort() }
}

/** Compares with a JSON value, whatever the prototypes of its objects. */
export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value) ?? 'null')
