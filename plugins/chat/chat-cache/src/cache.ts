import { createHash } from 'node:crypto'
import type { CallContext } from '@svc/core'
import type {
  Cache,
  FinishReason,
  ModelAnswer,
  ModelCall,
  ModelDone,
  ModelEvent,
  ModelRequest,
  Check,
  Json,
  MetricFamily,
  Peers,
  WorkerMetrics,
} from '@svc/core/contracts'

/** The name of the cache in the slot `CacheAreas`. */
export const AREA = 'chat'

export interface AnswerCacheOptions {
  readonly cache: Pick<Cache, 'get' | 'put'>
  readonly counts: Pick<CacheCounts, 'asked'>
  /** Whether principals share their answers. */
  readonly shared: boolean
}

/** Answers identical requests from the cache. */
export interface AnswerCache {
  /** For a tap of `ModelCalls.hooks.modelCall`. */
  readonly called: (call: ModelCall, ctx: CallContext) => Promise<ModelAnswer | undefined>
  /** For a tap of `ModelCalls.hooks.modelDone`. */
  readonly done: (done: ModelDone, ctx: CallContext) => Promise<void>
}

interface Keyed {
  readonly provider: string
  /** Absent if the request cannot be serialized. */
  readonly key: string | undefined
}

export function createAnswerCache({ cache, counts, shared }: AnswerCacheOptions): AnswerCache {
  // the same request object arrives before and after the call; the key of a long history is computed once
  const keys = new WeakMap<ModelRequest, Keyed>()
  const keyFor = ({ selected: { provider }, request }: ModelCall, { principal }: CallContext) => {
    const known = keys.get(request)
    if (known?.provider === provider) return known.key
    const key = keyOf({ provider, request, ...(shared ? {} : { principal: principal.id }) })
    keys.set(request, { provider, key })
    return key
  }
  return {
    async called(call, ctx) {
      if (!isCacheable(call)) return undefined
      const key = keyFor(call, ctx)
      const found = key === undefined ? undefined : await cache.get(AREA, key, ctx)
      // a retry looks again, because another turn can have stored the answer; it counts only as a hit
      if (found !== undefined || call.attempt === 1) counts.asked(found !== undefined)
      // `done` has written it
      return found === undefined ? undefined : { events: found as unknown as ModelEvent[] }
    },
    async done(done, ctx) {
      if (!isCacheable(done) || done.answered || done.failure || !done.events || !isWhole(done.events)) return
      const key = keyFor(done, ctx)
      if (key !== undefined) await cache.put(AREA, key, joined(done.events) as unknown as Json, ctx)
    },
  }
}

/** Whether the kept parts are all of the answer. Embeddings, further answers and log probabilities are not kept. */
const isCacheable = ({ kind, request: { n = 1, logprobs, native } }: ModelCall) =>
  kind === 'chat' && n === 1 && logprobs === undefined && native === undefined

const WHOLE: ReadonlySet<FinishReason> = new Set(['stop', 'tool_calls'])

/** Whether an answer is complete: neither cut nor refused. */
function isWhole(events: readonly ModelEvent[]): boolean {
  const last = events.at(-1)
  return last?.type === 'finish' && WHOLE.has(last.reason)
}

/** Joins the text pieces of an answer. */
function joined(events: readonly ModelEvent[]): ModelEvent[] {
  const parts: ModelEvent[] = []
  let text = ''
  const close = () => {
    if (text !== '') parts.push({ type: 'text', text })
    text = ''
  }
  for (const event of events) {
    if (event.type === 'text') {
      text += event.text
      continue
    }
    close()
    parts.push(event)
  }
  close()
  return parts
}

/** The fields of a cache key. Without `principal`, all principals share the answer. */
interface CacheKeyFields {
  readonly provider: string
  readonly request: ModelRequest
  readonly principal?: string
}

/**
 * The cache key of a request. Requests that can have different answers have different keys.
 * `gathered` and `cacheKey` are not part of the key: they do not change the answer.
 * Returns `undefined` for a request that is nested too deeply for JSON.
 */
export function keyOf({ provider, request: asked, principal }: CacheKeyFields): string | undefined {
  const { gathered: _gathered, cacheKey: _cacheKey, ...request } = asked
  const text = written({ provider, principal, request })
  return text === undefined ? undefined : createHash('sha256').update(text).digest('base64url')
}

function written(value: object): string | undefined {
  try {
    return JSON.stringify(value, sorted)
  } catch {
    return undefined
  }
}

/** Sorts the keys of objects, so that their order does not change the key. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value)
  const keys = entries.map(([key]) => key)
  return inOrder(keys) ? value : Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

const inOrder = (keys: readonly string[]) => keys.every((key, at) => at === 0 || keys[at - 1]! < key)

/** The cache statistics of a worker. */
interface AnswerStats {
  readonly hits: number
  readonly misses: number
  /** Answers in the cache now. */
  readonly size: number
  /** Whether the workers share these answers. */
  readonly isShared: boolean
}

/** Counts cache hits and misses, in all workers. */
interface CacheCounts {
  /** Counts a lookup. */
  asked(isHit: boolean): void
  /** The statistics of all workers. */
  read(ctx: CallContext): Promise<AnswerStats>
  /** The statistics of this worker, as metrics. */
  families(ctx: CallContext): Promise<MetricFamily[]>
  /** For a tap of `Peers.hooks.metrics`: adds the statistics of this worker. */
  readonly own: (metrics: WorkerMetrics, ctx: CallContext) => Promise<WorkerMetrics>
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (metrics: WorkerMetrics) => void
}

const NAME = 'chat-cache'
const NOTHING: AnswerStats = { hits: 0, misses: 0, size: 0, isShared: false }

// `own` of this process, or of another worker, has written the value under this name
const partOf = (metrics: WorkerMetrics) => (metrics[NAME] ?? NOTHING) as unknown as AnswerStats

/** The answers in the cache of this worker, or in the one that all share. */
type Entries = Pick<AnswerStats, 'size' | 'isShared'>

export function createCacheCounts(
  entries: (ctx: CallContext) => Promise<Entries>,
  peers: Pick<Peers, 'metrics'> | undefined
): CacheCounts {
  const mine = { hits: 0, misses: 0 }
  // the metrics plugin inherits counters itself, so report only the counts of this worker
  const inherited = { hits: 0, misses: 0 }
  const total = async (ctx: CallContext): Promise<AnswerStats> => ({
    hits: mine.hits + inherited.hits,
    misses: mine.misses + inherited.misses,
    ...(await entries(ctx)),
  })
  return {
    asked: isHit => void mine[isHit ? 'hits' : 'misses']++,
    async read(ctx) {
      if (!peers) return total(ctx)
      return (await peers.metrics(ctx)).map(current).reduce(sum, NOTHING)
    },
    families: async ctx => familiesOf({ ...mine, ...(await entries(ctx)) }),
    own: async (metrics, ctx) => ({ ...metrics, [NAME]: { ...(await total(ctx)) } }),
    inherit(metrics) {
      const { hits, misses } = partOf(metrics)
      inherited.hits += hits
      inherited.misses += misses
    },
  }
}

/** The entries of a worker that has ended no longer exist. */
const current = (metrics: WorkerMetrics): AnswerStats => (metrics.ended ? { ...partOf(metrics), size: 0 } : partOf(metrics))

/** Entries that workers share are counted once. */
const sum = (a: AnswerStats, b: AnswerStats): AnswerStats => ({
  hits: a.hits + b.hits,
  misses: a.misses + b.misses,
  size: b.isShared ? Math.max(a.size, b.size) : a.size + b.size,
  isShared: b.isShared,
})

const single = (name: string, help: string, type: 'counter' | 'gauge', value: number): MetricFamily => ({
  name,
  help,
  type,
  aggregator: 'sum',
  values: [{ labels: {}, value }],
})

const familiesOf = ({ hits, misses, size, isShared }: AnswerStats): MetricFamily[] => [
  single('svc_cache_hits_total', 'Model calls that the cache answered.', 'counter', hits),
  single('svc_cache_misses_total', 'Model calls that the cache could not answer.', 'counter', misses),
  { ...single('svc_cache_entries', 'Answers in the cache.', 'gauge', size), aggregator: isShared ? 'max' : 'sum' },
]

/** The check `cache`. It is always healthy, because a cache can be empty; it reports the statistics. */
export function createCacheCheck(enabled: boolean, counts: Pick<CacheCounts, 'read'>): Check {
  return {
    probe: async () => ({ status: 'healthy' }),
    async status(ctx) {
      const { hits, misses, size } = await counts.read(ctx)
      const asked = hits + misses
      return { status: 'healthy', detail: { enabled, size, hit_rate: asked === 0 ? 0 : hits / asked } }
    },
  }
}
