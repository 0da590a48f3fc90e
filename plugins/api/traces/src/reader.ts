import { createHash } from 'node:crypto'
import { type CallContext, codeOf, svcError } from '@svc/core'
import type { RangePage, RangeQuery, Store, StoreRecord } from '@svc/core/contracts'
import { keyOf, type RootRecord, ROOTS, SPANS, type StoredSpan } from './space.ts'

/** Filters of a list. Times are Unix milliseconds. */
export interface TraceQuery {
  readonly from?: number
  readonly to?: number
  readonly principal?: string
  readonly conversation?: string
  readonly run?: string
  readonly request?: string
  readonly status?: 'ok' | 'error' | 'running'
  readonly minMs?: number
  readonly text?: string
  /** False: without requests that only read and have not failed. */
  readonly hasReads?: false
  readonly limit: number
  readonly cursor?: string
}

interface RootPage {
  readonly roots: readonly RootRecord[]
  readonly next?: string
}

/** A trace: its roots, and a page of their spans. */
interface TracePage {
  readonly roots: readonly RootRecord[]
  readonly spans: readonly StoredSpan[]
  readonly next?: string
}

export interface TraceReader {
  /** Newest first. A page can be shorter than its limit, although others follow. */
  list(query: TraceQuery, ctx: CallContext): Promise<RootPage>
  /** Throws NOT_FOUND. */
  read(trace: string, query: { readonly limit: number; readonly cursor?: string }, ctx: CallContext): Promise<TracePage>
}

/** Records that one request looks at. */
const MOST_READ = 5_000
const PAGE = 500
/** Roots of one trace. Callers can give many requests the same trace. */
const MOST_ROOTS = 1_000
const ENTRIES = 20

const isAdmin = ({ principal: { scopes } }: CallContext): boolean => scopes.includes('admin') || scopes.includes('*')

export function createTraceReader(store: Store): TraceReader {
  return {
    async list(query, ctx) {
      const own = ownerOf(query.principal, ctx)
      const bound = { ...query, ...(own === undefined ? {} : { principal: own }) }
      const range = rangeOf(bound)
      const mark = digestOf(bound)
      let cursor = query.cursor === undefined ? undefined : cursorIn(query.cursor, mark)
      const roots: RootRecord[] = []
      for (let seen = 0; seen < MOST_READ; ) {
        const left = query.limit - roots.length
        const page = await pageOf(store, { ...range, limit: hasRest(bound) ? PAGE : left }, cursor, ctx)
        seen += page.records.length
        const taken = takeWanted(page.records, bound, left)
        roots.push(...taken.roots)
        // a page that is not used up is read again up to its last root, for the cursor behind it
        if (taken.used < page.records.length) cursor = (await pageOf(store, { ...range, limit: taken.used }, cursor, ctx)).next
        else cursor = page.next
        if (cursor === undefined || roots.length === query.limit) break
      }
      return { roots, ...(cursor === undefined ? {} : { next: cursorOf(mark, cursor) }) }
    },
    async read(trace, { limit, cursor }, ctx) {
      const own = isAdmin(ctx) ? undefined : ctx.principal.id
      const range = { index: 'by_trace', equals: [trace], limit: MOST_ROOTS }
      const { records } = await store.range(ROOTS, range, ctx)
      const roots = records
        .map(({ value }) => value as unknown as RootRecord)
        .filter(({ principal }) => own === undefined || principal === own)
      if (roots.length === 0) throw traceUnknown(trace)
      const mark = digestOf({ trace, own })
      const at = cursor === undefined ? { root: 0, seq: 1, skip: 0 } : placeIn(cursorIn(cursor, mark))
      return { roots, ...(await spansFrom(store, roots, at, limit, mark, ctx)) }
    },
  }
}

/** The principal whose traces the caller sees; undefined for all. Throws FORBIDDEN. */
function ownerOf(asked: string | undefined, ctx: CallContext): string | undefined {
  if (isAdmin(ctx)) return asked
  if (asked !== undefined && asked !== ctx.principal.id)
    throw svcError('FORBIDDEN', 'only callers with the scope admin see what belongs to other principals', {
      details: { required_scope: 'admin' },
      hint: 'Leave out principal to see your own',
    })
  return ctx.principal.id
}

type Range = Omit<RangeQuery, 'limit' | 'cursor'>

/** The index that leaves the fewest records to look at. */
function rangeOf({ from, to, principal, conversation, run, request }: Omit<TraceQuery, 'limit'>): Range {
  const bounds = { reverse: true, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
  if (run !== undefined) return { index: 'by_run', equals: [run], ...bounds }
  if (request !== undefined) return { index: 'by_request', equals: [request], ...bounds }
  if (conversation !== undefined) return { index: 'by_conversation', equals: [conversation], ...bounds }
  if (principal !== undefined) return { index: 'by_principal', equals: [principal], ...bounds }
  return { index: 'by_start', ...bounds }
}

/** Whether records of the range can be unwanted. */
const hasRest = ({ status, minMs, text, hasReads, run, request, conversation, principal }: Omit<TraceQuery, 'limit'>) =>
  status !== undefined ||
  minMs !== undefined ||
  text !== undefined ||
  hasReads === false ||
  [run, request, conversation, principal].filter(item => item !== undefined).length > 1

export const statusOf = ({ end, status, errors }: RootRecord): NonNullable<TraceQuery['status']> =>
  end === undefined ? 'running' : status === 'error' || errors > 0 ? 'error' : 'ok'

const isRead = ({ kind, name }: RootRecord): boolean => kind === 'server' && /^(?:GET|HEAD) /.test(name)

const EQUAL = ['principal', 'conversation', 'run', 'request'] as const

function isWanted(root: RootRecord, query: Omit<TraceQuery, 'limit'>): boolean {
  const { status, minMs, text, hasReads } = query
  return (
    EQUAL.every(name => query[name] === undefined || root[name] === query[name]) &&
    (status === undefined || statusOf(root) === status) &&
    (minMs === undefined || (root.end !== undefined && root.end - root.start >= minMs)) &&
    (hasReads !== false || !isRead(root) || statusOf(root) === 'error') &&
    (text === undefined || root.name.toLowerCase().includes(text.toLowerCase()))
  )
}

/** The first wanted roots of a page, and how many records hold them. */
function takeWanted(records: readonly StoreRecord[], query: Omit<TraceQuery, 'limit'>, most: number) {
  const roots: RootRecord[] = []
  for (const [at, { value }] of records.entries()) {
    const root = value as unknown as RootRecord
    if (isWanted(root, query)) roots.push(root)
    if (roots.length === most) return { roots, used: at + 1 }
  }
  return { roots, used: records.length }
}

async function pageOf(store: Store, query: RangeQuery, cursor: string | undefined, ctx: CallContext): Promise<RangePage> {
  if (cursor === undefined) return store.range(ROOTS, query, ctx)
  try {
    return await store.range(ROOTS, { ...query, cursor }, ctx)
  } catch (error) {
    throw codeOf(error) === 'STORE_INVALID' ? cursorInvalid() : error
  }
}

interface Place {
  readonly root: number
  readonly seq: number
  readonly skip: number
}

async function spansFrom(
  store: Store,
  roots: readonly RootRecord[],
  from: Place,
  limit: number,
  mark: string,
  ctx: CallContext
): Promise<Pick<TracePage, 'spans' | 'next'>> {
  const spans: StoredSpan[] = []
  let { root, seq, skip } = from
  while (root < roots.length) {
    const { trace, span } = roots[root]!
    const entries = await store.read(SPANS, keyOf(trace, span), { from: seq, limit: ENTRIES }, ctx)
    for (const entry of entries) {
      const some = (entry.value as unknown as readonly StoredSpan[]).slice(skip)
      const left = limit - spans.length
      spans.push(...some.slice(0, left))
      if (some.length > left) return { spans, next: cursorOf(mark, `${root}.${entry.seq}.${skip + left}`) }
      skip = 0
      seq = entry.seq + 1
    }
    if (entries.length < ENTRIES) [root, seq] = [root + 1, 1]
  }
  return { spans }
}

function placeIn(text: string): Place {
  const [, root, seq, skip] = /^(\d{1,6})\.(\d{1,10})\.(\d{1,10})$/.exec(text) ?? []
  if (skip === undefined) throw cursorInvalid()
  return { root: Number(root), seq: Number(seq), skip: Number(skip) }
}

/** A cursor holds only for the query and the caller that it was made for. */
function digestOf(about: object): string {
  const { limit: _limit, cursor: _cursor, ...rest } = about as { limit?: unknown; cursor?: unknown }
  return createHash('sha256')
    .update(JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1))))
    .digest('base64url')
    .slice(0, 12)
}

const cursorOf = (mark: string, place: string) => Buffer.from(`${mark}${place}`).toString('base64url')

function cursorIn(cursor: string, mark: string): string {
  const text = Buffer.from(cursor, 'base64url').toString()
  if (!text.startsWith(mark) || cursorOf(mark, text.slice(mark.length)) !== cursor) throw cursorInvalid()
  return text.slice(mark.length)
}

const cursorInvalid = () =>
  svcError('INVALID_VALUE', 'cursor is not a cursor of this query', {
    details: { field: 'cursor', reason: 'must be next_cursor of the previous page of the same query' },
    hint: 'Use next_cursor of the previous page, with the same filters',
  })

const traceUnknown = (trace: string) =>
  svcError('NOT_FOUND', `there is no trace ${trace.slice(0, 64)}`, {
    details: { trace_id: trace.slice(0, 64) },
    hint: 'GET /api/v1/traces lists the traces that svc keeps',
  })
