import { type CallContext, codeOf } from '@svc/core'
import type { Run, RunEvent, RunQuery, RunQuestion, RunStep, Store, WorkflowDefinition } from '@svc/core/contracts'
import { invalid, runUnknown } from './errors.ts'
import { historyOf } from './history.ts'
import type { Loader } from './loader.ts'
import { isSeen, meets, rangeOf } from './run-filter.ts'
import { type RunRecord, RUNS } from './space.ts'
import { eventOf, runOf, stepsOf } from './views.ts'

export interface RunReaderOptions {
  readonly store: Store
  readonly loader: Loader
  readonly readers: RunListeners
  /** The record of a run that this worker executes. */
  readonly working: (id: string) => RunRecord | undefined
}

/** How often a listener polls a run that another worker executes. */
const LOOK_MS = 150
/** Maximum number of buffered events. Older events that are in no log are dropped. */
const MOST_EVENTS = 1_000
/** Maximum number of pages that a filtered list reads. */
const MOST_PAGES = 20

const questionsOf = (run: string, { workflow, owner }: RunRecord, waiting: Run['waiting']): RunQuestion[] =>
  waiting.flatMap(({ ask, ...rest }) => (ask === undefined ? [] : [{ run, workflow, owner, waiting: { ...rest, ask } }]))

/** A run in the store. */
export interface StoredRun {
  readonly id: string
  readonly record: RunRecord
  readonly version: number
}

/** Reads runs for callers that can see them. */
export class RunReader {
  readonly #parts: RunReaderOptions

  constructor(parts: RunReaderOptions) {
    this.#parts = parts
  }

  /** The record of a run. Throws RUN_UNKNOWN, also for runs of other owners. */
  async record(id: string, ctx: CallContext): Promise<RunRecord> {
    const record = isId(id) ? await this.#parts.loader.record(id, ctx) : undefined
    if (!record || !isSeen(record, ctx)) throw runUnknown(id)
    return record
  }

  /** The same with the version of the record in the store. */
  async stored(id: string, ctx: CallContext): Promise<StoredRun> {
    const found = isId(id) ? await this.#parts.store.get(RUNS, id, ctx) : undefined
    const record = found?.value as unknown as RunRecord | undefined
    if (!found || !record || !isSeen(record, ctx)) throw runUnknown(id)
    return { id, record, version: found.version }
  }

  async get(id: string, ctx: CallContext): Promise<Run> {
    return this.#whole(id, await this.record(id, ctx), ctx)
  }

  async #whole(id: string, record: RunRecord, ctx: CallContext): Promise<Run> {
    return runOf(id, record, record.ended ? undefined : await this.#parts.loader.history(id, ctx))
  }

  async steps(id: string, ctx: CallContext): Promise<readonly RunStep[]> {
    return (await this.stepsAt(id, ctx)).steps
  }

  async stepsAt(id: string, ctx: CallContext): Promise<{ readonly steps: readonly RunStep[]; readonly event: number }> {
    await this.record(id, ctx)
    const entries = await this.#parts.loader.entries(id, 1, ctx)
    return { steps: stepsOf(historyOf(entries.map(({ value }) => value))), event: entries.at(-1)?.seq ?? 0 }
  }

  async definitionOf(id: string, ctx: CallContext): Promise<WorkflowDefinition> {
    const { workflow, definitions } = await this.record(id, ctx)
    return this.#parts.loader.text(definitions[workflow]!, ctx)
  }

  async runs(
    { limit, cursor, ...filter }: RunQuery,
    ctx: CallContext
  ): Promise<{ readonly runs: readonly Run[]; readonly next?: string }> {
    const range = { ...rangeOf(filter, ctx), reverse: true }
    const runs: Run[] = []
    let next = cursor
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const page = await this.#page(
        { ...range, limit: limit - runs.length, ...(next === undefined ? {} : { cursor: next }) },
        ctx
      )
      for (const { key, value } of page.records) {
        const record = value as unknown as RunRecord
        if (!isSeen(record, ctx) || !meets(record, filter)) continue
        runs.push(runOf(key, record, record.ended ? undefined : await this.#parts.loader.history(key, ctx)))
      }
      next = page.next
      if (next === undefined || runs.length >= limit) break
    }
    return { runs, ...(next === undefined ? {} : { next }) }
  }

  /** Reads open runs only: they are few, even where many have ended. */
  async questions(
    { limit, cursor }: { readonly limit: number; readonly cursor?: string },
    ctx: CallContext
  ): Promise<{ readonly questions: readonly RunQuestion[]; readonly next?: string }> {
    const questions: RunQuestion[] = []
    let next = cursor
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const from = next === undefined ? {} : { cursor: next }
      // a run can have several questions: a page is never cut within one
      const open = { index: 'by_status', equals: ['running'], reverse: true, limit: Math.max(1, limit - questions.length) }
      const page = await this.#page({ ...open, ...from }, ctx)
      for (const { key, value } of page.records) {
        const record = value as unknown as RunRecord
        if (!isSeen(record, ctx) || !record.waiting.some(({ ask }) => ask)) continue
        // the record is written when the run sleeps: its log knows what was answered since
        const { waiting } = runOf(key, record, await this.#parts.loader.history(key, ctx))
        questions.push(...questionsOf(key, record, waiting))
      }
      next = page.next
      if (next === undefined || questions.length >= limit) break
    }
    return { questions, ...(next === undefined ? {} : { next }) }
  }

  /** Throws INVALID_VALUE for an invalid cursor. */
  async #page(query: Parameters<Store['range']>[1], ctx: CallContext) {
    try {
      return await this.#parts.store.range(RUNS, query, ctx)
    } catch (error) {
      throw codeOf(error) === 'STORE_INVALID' && query.cursor !== undefined
        ? invalid('cursor', 'must be the cursor that an earlier page returned')
        : error
    }
  }

  /** The run at its end, or after the waiting time. A run in this worker is not read from the store. */
  async settled(id: string, waitMs: number, ctx: CallContext): Promise<Run> {
    const until = performance.now() + waitMs
    const news = this.#news(id, true)
    try {
      const working = this.#parts.working(id)
      for (let known = working && isSeen(working, ctx) ? working : undefined; ; known = news.ended()) {
        const record = known ?? (await this.record(id, ctx))
        const left = until - performance.now()
        if (record.status !== 'running' || left <= 0) return await this.#whole(id, record, ctx)
        await news.next(Math.min(left, LOOK_MS * 4), ctx.signal)
      }
    } finally {
      news[Symbol.dispose]()
    }
  }

  async *events(id: string, after: number, ctx: CallContext): AsyncGenerator<RunEvent, void> {
    await this.record(id, ctx)
    if (!Number.isInteger(after) || after < 0)
      throw invalid('last-event-id', 'must be the id of an event', { value: String(after).slice(0, 50) })
    using news = this.#news(id)
    let isOver = false
    for (let seen = after; ; ) {
      ctx.signal.throwIfAborted()
      yield* news.take()
      const entries = await this.#parts.loader.entries(id, seen + 1, ctx)
      for (const { seq, value } of entries) {
        seen = seq
        const event = eventOf(seq, value)
        if (event) yield event
        if (value.t === 'over') return
      }
      if (entries.length > 0) continue
      if (isOver) return
      // its last entries can be newer than the last read: read once more
      isOver = (await this.record(id, ctx)).status !== 'running'
      if (!isOver) await news.next(LOOK_MS, ctx.signal)
    }
  }

  #news(id: string, onlyEnd = false) {
    const events: RunEvent[] = []
    let [wake, has]: [(() => void) | undefined, boolean] = [undefined, false]
    let record: RunRecord | undefined
    const reader = this.#parts.readers.add(id, (event, ended) => {
      record ??= ended
      // wait for the record of the ended run
      if (onlyEnd && !record) return
      if (event) events.push(event)
      if (events.length > MOST_EVENTS) events.shift()
      has = true
      wake?.()
    })
    return {
      take: () => events.splice(0),
      ended: () => record,
      /** Resolves with the next change, or after the time. */
      async next(ms: number, signal: AbortSignal): Promise<void> {
        if (!has) {
          const waited = Promise.withResolvers<void>()
          wake = waited.resolve
          const timer = setTimeout(waited.resolve, ms)
          signal.addEventListener('abort', waited.resolve as () => void, { once: true })
          await waited.promise
          clearTimeout(timer)
          signal.removeEventListener('abort', waited.resolve as () => void)
        }
        has = false
        wake = undefined
      },
      [Symbol.dispose]: () => reader[Symbol.dispose](),
    }
  }
}

const isId = (id: string) => /^[A-Za-z0-9_-]{1,64}$/.test(id)

/** Receives an event that is in no log, and the record of a run that ended in this worker. */
type ChangeNotice = (event?: RunEvent, ended?: RunRecord) => void

/** Listeners to runs in this process. A call means that the log has new entries. */
export class RunListeners {
  readonly #readers = new Map<string, Set<ChangeNotice>>()

  /** Calls `news` with each change. */
  add(run: string, news: ChangeNotice): Disposable {
    const those = this.#readers.get(run) ?? new Set()
    this.#readers.set(run, those.add(news))
    return {
      [Symbol.dispose]: () => {
        those.delete(news)
        if (those.size === 0) this.#readers.delete(run)
      },
    }
  }

  notify(run: string, ...what: Parameters<ChangeNotice>): void {
    for (const news of this.#readers.get(run) ?? []) news(...what)
  }
}
