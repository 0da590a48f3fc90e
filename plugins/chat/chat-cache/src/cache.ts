import { createHash } from 'node:crypto'
import type { CallContext } from '@svc/core'
import type {
  FinishReason,
  ModelAnswer,
  ModelCall,
  ModelDone,
  ModelEvent,
  ModelRequest,
  Check,
  MetricFamily,
  Peers,
  WorkerMetrics,
} from '@svc/core/contracts'

export interface CacheParts {
  readonly shelf: LruCache
  readonly counts: Pick<CacheCounts, 'asked'>
  /** Whether principals have each other's answers. */
  readonly shared: boolean
}

/** Answers what was answered before. */
export interface Cache {
  /** For a tap of `Chat.hooks.modelCall`. */
  readonly called: (call: ModelCall, ctx: CallContext) => ModelAnswer | undefined
  /** For a tap of `Chat.hooks.modelDone`. */
  readonly done: (done: ModelDone, ctx: CallContext) => void
}

interface Keyed {
  readonly provider: string
  /** Absent if the request cannot be serialized. */
  readonly key: string | undefined
}

export function createCache({ shelf, counts, shared }: CacheParts): Cache {
  // a request comes by twice, before and after the call: in this process it is the same one, and a long history is read once
  const keys = new WeakMap<ModelRequest, Keyed>()
  const keyFor = ({ selected: { provider }, request }: ModelCall, { principal }: CallContext) => {
    const known = keys.get(request)
    if (known?.provider === provider) return known.key
    const key = keyOf({ provider, request, ...(shared ? {} : { principal: principal.id }) })
    keys.set(request, { provider, key })
    return key
  }
  return {
    called(call, ctx) {
      const key = keyFor(call, ctx)
      const text = key === undefined ? undefined : shelf.get(key)
      // a retry looks again, for another turn may have been answered meanwhile; it is no question of its own
      if (text !== undefined || call.attempt === 1) counts.asked(text !== undefined)
      if (text === undefined) return undefined
      return { events: JSON.parse(text) as ModelEvent[] }
    },
    done(done, ctx) {
      if (done.answered || done.failure || !done.events || !isWhole(done.events)) return
      const key = keyFor(done, ctx)
      if (key !== undefined) shelf.put(key, JSON.stringify(joined(done.events)))
    },
  }
}

const WHOLE: ReadonlySet<FinishReason> = new Set(['stop', 'tool_calls'])

/** Whether an answer is one that the next who asks could be given: neither cut nor refused. */
function isWhole(events: readonly ModelEvent[]): boolean {
  const last = events.at(-1)
  return last?.type === 'finish' && WHOLE.has(last.reason)
}

/** The same answer in as few pieces as it has parts: how it was cut when it came is nothing to keep. */
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

/** Who is asked what, and for whom; an absent `principal` is everybody. */
interface Question {
  readonly provider: string
  readonly request: ModelRequest
  readonly principal?: string
}

/**
 * One text for one question: two that differ in anything that could change the answer differ in it. Whether the reply is gathered (`gathered`) changes how the
 * answer comes, not what it is. A question that is nested too deep to be written has none.
 */
export function keyOf({ provider, request: { gathered: _gathered, ...request }, principal }: Question): string | undefined {
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

/** Objects with their keys in order, so that it does not matter how they were made. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value)
  const keys = entries.map(([key]) => key)
  return inOrder(keys) ? value : Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

const inOrder = (keys: readonly string[]) => keys.every((key, at) => at === 0 || keys[at - 1]! < key)

/** How much may lie on a shelf, and for how long. */
export interface LruLimits {
  readonly ttlMs: number
  readonly entries: number
  readonly bytes: number
}

/** Texts by key: the one that was read longest ago goes first. */
export interface LruCache {
  /** How many lie there that still count. */
  readonly size: number
  get(key: string): string | undefined
  /** Keeps it, unless it alone is more than the shelf takes. */
  put(key: string, text: string): void
}

interface CacheEntry {
  readonly text: string
  readonly bytes: number
  /** On the clock of the shelf. */
  readonly until: number
}

/** What an entry takes besides its text, about. */
const ENTRY_BYTES = 200

/** `now` returns milliseconds of a monotonic clock. */
export function createLruCache(
  { ttlMs, entries, bytes: most }: LruLimits,
  now: () => number = () => performance.now()
): LruCache {
  const kept = new Map<string, CacheEntry>()
  let bytes = 0
  const drop = (key: string, one: CacheEntry) => {
    kept.delete(key)
    bytes -= one.bytes
  }
  const take = (key: string) => {
    const one = kept.get(key)
    if (one) drop(key, one)
    return one
  }
  const add = (key: string, one: CacheEntry) => {
    kept.set(key, one)
    bytes += one.bytes
  }
  const makeRoom = () => {
    for (const [key, one] of kept) {
      if (kept.size <= entries && bytes <= most) return
      drop(key, one)
    }
  }
  return {
    get size() {
      for (const [key, one] of kept) if (one.until <= now()) drop(key, one)
      return kept.size
    },
    get(key) {
      const one = take(key)
      if (!one || one.until <= now()) return undefined
      add(key, one)
      return one.text
    },
    put(key, text) {
      take(key)
      const size = Buffer.byteLength(text) + ENTRY_BYTES
      if (size > most) return
      add(key, { text, bytes: size, until: now() + ttlMs })
      makeRoom()
    },
  }
}

/** What a worker tells of its cache. */
interface CacheStats {
  readonly hits: number
  readonly misses: number
  /** Answers that it keeps now. */
  readonly size: number
}

/** How often an answer was there, over all workers. */
interface CacheCounts {
  /** A call came by; the answer was there or not. */
  asked(isHit: boolean): void
  /** The figures of all workers. */
  read(ctx: CallContext): Promise<CacheStats>
  /** This worker's, as metrics. */
  families(): MetricFamily[]
  /** For a tap of `Peers.hooks.metrics`: adds those of this worker. */
  readonly own: (metrics: WorkerMetrics) => WorkerMetrics
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (metrics: WorkerMetrics) => void
}

const NAME = 'chat-cache'
const NOTHING: CacheStats = { hits: 0, misses: 0, size: 0 }

// `own` of this process, or of another worker, has written the value under this name
const partOf = (metrics: WorkerMetrics) => (metrics[NAME] ?? NOTHING) as unknown as CacheStats

export function createCacheCounts(size: () => number, peers: Pick<Peers, 'metrics'> | undefined): CacheCounts {
  const mine = { hits: 0, misses: 0 }
  // the metrics plugin inherits counters itself, so report only the counts of this worker
  const inherited = { hits: 0, misses: 0 }
  const total = (): CacheStats => ({ hits: mine.hits + inherited.hits, misses: mine.misses + inherited.misses, size: size() })
  return {
    asked: isHit => void mine[isHit ? 'hits' : 'misses']++,
    async read(ctx) {
      if (!peers) return total()
      return (await peers.metrics(ctx)).map(current).reduce(sum, NOTHING)
    },
    families: () => familiesOf({ ...mine, size: size() }),
    own: metrics => ({ ...metrics, [NAME]: { ...total() } }),
    inherit(metrics) {
      const { hits, misses } = partOf(metrics)
      inherited.hits += hits
      inherited.misses += misses
    },
  }
}

/** What a worker keeps dies with it. */
const current = (metrics: WorkerMetrics): CacheStats => (metrics.ended ? { ...partOf(metrics), size: 0 } : partOf(metrics))

const sum = (a: CacheStats, b: CacheStats): CacheStats => ({
  hits: a.hits + b.hits,
  misses: a.misses + b.misses,
  size: a.size + b.size,
})

const single = (name: string, help: string, type: 'counter' | 'gauge', value: number): MetricFamily => ({
  name,
  help,
  type,
  aggregator: 'sum',
  values: [{ labels: {}, value }],
})

const familiesOf = ({ hits, misses, size }: CacheStats): MetricFamily[] => [
  single('svc_cache_hits_total', 'Calls of models that the cache has answered.', 'counter', hits),
  single('svc_cache_misses_total', 'Calls of models that the cache could not answer.', 'counter', misses),
  single('svc_cache_entries', 'Answers in the cache.', 'gauge', size),
]

/** The check `cache`: it lies in memory, so it is well; its figures are all there is to tell. */
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
