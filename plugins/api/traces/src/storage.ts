import { type CallContext, codeOf, type Log } from '@svc/core'
import type { MetricSource, Store, StoreOp } from '@svc/core/contracts'
import { counter } from '@svc/plugin-kit'
import { keepLease } from '@svc/storage-kit'
import type { Collector, SpanSink } from './collector.ts'
import type { TracesConfig } from './config.ts'
import { appendSpans, deleteRoot, putRoot, type RootRecord, ROOTS, type StoredSpan } from './space.ts'

export interface StorageOptions {
  readonly store: Store
  readonly keep: TracesConfig['keep']
  readonly worker: string
  readonly log: Log
  readonly lasting: CallContext
}

/** Writes traces in the background, and deletes old ones. */
export interface TraceStorage extends SpanSink {
  /** Resolves when everything so far is in the store, or could not be written. */
  flush(): Promise<void>
  /** Deletes what exceeds `traces.keep`, unless another worker does so. */
  prune(): Promise<void>
  /** Spans that could not be written. */
  lost(): number
}

/** Milliseconds for which spans wait for others, to share a commit. */
const WAIT_MS = 500
const MOST_OPS = 500
/** Spans that wait for the store. */
const MOST_WAITING = 20_000
const LEASE = 'traces.prune'
const LEASE_MS = 30_000
const PAGE = 1_000
const DELETED_AT_ONCE = 200

export function createTraceStorage({ store, keep, worker, log, lasting }: StorageOptions): TraceStorage {
  let waiting: StoreOp[] = []
  let [spansWaiting, lost] = [0, 0]
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()
  let isFailing = false

  const write = async (ops: readonly StoreOp[], spans: number) => {
    try {
      for (let at = 0; at < ops.length; at += MOST_OPS) await store.batch(ops.slice(at, at + MOST_OPS), {}, lasting)
      isFailing = false
    } catch (err) {
      lost += spans
      if (!isFailing && !lasting.signal.aborted)
        log.warn({ err }, 'failed to store traces; svc drops them until the store works again')
      isFailing = true
    }
  }
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (waiting.length === 0) return writing
    const [ops, spans] = [waiting, spansWaiting]
    waiting = []
    return (writing = writing.then(async () => {
      await write(ops, spans)
      spansWaiting -= spans
    }))
  }
  const add = (op: StoreOp) => {
    waiting.push(op)
    timer ??= setTimeout(() => void flush(), WAIT_MS).unref()
  }
  return {
    flush,
    root: root => add(putRoot(root)),
    spans(key, spans: readonly StoredSpan[]) {
      if (spansWaiting + spans.length > MOST_WAITING) return void (lost += spans.length)
      spansWaiting += spans.length
      add(appendSpans(key, spans))
    },
    async prune() {
      try {
        await using held = await keepLease(store, LEASE, { holder: `${worker}/traces`, ttlMs: LEASE_MS, waitMs: 0 }, lasting)
        await deleteOld(store, keep, held.ctx)
      } catch (err) {
        if (codeOf(err) !== 'LEASE_BUSY' && !lasting.signal.aborted) log.warn({ err }, 'failed to delete old traces')
      }
    },
    lost: () => lost,
  }
}

/** Walks from the newest to the oldest. What comes after a limit is deleted. */
async function deleteOld(store: Store, keep: TracesConfig['keep'], ctx: CallContext): Promise<void> {
  const oldest = Date.now() - keep.days * 86_400_000
  let [count, bytes] = [0, 0]
  let cursor: string | undefined
  do {
    const range = { index: 'by_start', reverse: true, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
    const page = await store.range(ROOTS, range, ctx)
    const over: string[] = []
    for (const { key, value } of page.records) {
      const root = value as unknown as RootRecord
      count += 1
      bytes += root.size + OVERHEAD
      if (root.start < oldest || count > keep.count || bytes > keep.bytes) over.push(key)
    }
    for (let at = 0; at < over.length; at += DELETED_AT_ONCE)
      await store.batch(over.slice(at, at + DELETED_AT_ONCE).flatMap(deleteRoot), {}, ctx)
    cursor = page.next
  } while (cursor !== undefined)
}

/** Bytes of a root with its places in the indexes, about. */
const OVERHEAD = 1_200

/** Counts of this worker, for the metrics. */
export const createTraceMetrics = (collector: Pick<Collector, 'counts'>, storage: Pick<TraceStorage, 'lost'>): MetricSource => ({
  async read() {
    const { kept, skipped, dropped } = collector.counts()
    const outcomes = { kept, skipped }
    return [
      counter(
        'svc_traces_total',
        'Traces by outcome; skipped: host.traces_per_second was exceeded.',
        Object.entries(outcomes).map(([outcome, value]) => ({ labels: { outcome }, value }))
      ),
      counter('svc_trace_spans_lost_total', 'Spans that were dropped or could not be stored.', [
        { labels: {}, value: dropped + storage.lost() },
      ]),
    ]
  },
})
