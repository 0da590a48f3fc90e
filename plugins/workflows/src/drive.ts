import type { Log, SlotView, Use } from '@svc/core'
import type { ErrorTold, Json, NodeStep, RunClaim, Store, StoreOp, WorkflowDefinition, WorkflowNode } from '@svc/core/contracts'
import type { CompiledGraph } from './compiled.ts'
import type { Entry } from './entries.ts'
import { cancelled, runLate, runOld, told } from './errors.ts'
import { Execution, type ExecutionLimits, type Inner } from './execution.ts'
import { errorOf, newFrame, Stopped } from './frame.ts'
import { type History, spentIn } from './history.ts'
import { Journal } from './journal.ts'
import { Ledger } from './ledger.ts'
import type { Masks } from './masks.ts'
import { INBOX, type News, RUNS, type RunRecord } from './space.ts'
import { undo } from './undo.ts'
import type { Woken } from './waits.ts'
import { walk } from './walk.ts'

/** A run, read from the store. */
export interface Loaded {
  readonly id: string
  readonly record: RunRecord
  readonly history: History
  readonly definition: WorkflowDefinition
  readonly graph: CompiledGraph
  readonly secrets: Readonly<Record<string, string>>
  readonly masks: Masks
  readonly within: (workflow: string, input: Json, parameters: Json | undefined) => Promise<Inner>
  /** Throws what is wrong with the result. */
  readonly checkResult: (result: Json) => Promise<void>
}

export interface DriveParts {
  readonly store: Store
  readonly types: SlotView<WorkflowNode>
  readonly claim: RunClaim
  readonly loaded: Loaded
  readonly limits: ExecutionLimits & { readonly runTimeoutMs: number; readonly maxAgeMs: number }
  readonly stored: (entries: readonly Entry[], first: number) => void
  readonly progress: (step: string, node: string, progress: Extract<NodeStep, { readonly type: 'progress' }>) => void
  readonly log: Log
  readonly use: Use
}

/** How a run was left: it has ended, or waits, or goes on elsewhere. */
export type Left = { readonly how: 'ended'; readonly record: RunRecord } | { readonly how: 'asleep'; readonly due: number } | { readonly how: 'lost' } | { readonly how: 'stopped' }

/** Waits shorter than this are waited for here. */
const SHORT_WAIT_MS = 3_000

/** One run, as long as this process works on it. */
export class Drive {
  readonly #parts: DriveParts
  readonly #execution: Execution
  readonly #journal: Journal
  /** Aborts what runs; with the reason that the run fails with. */
  readonly #ending = new AbortController()
  readonly #begun = Date.now()
  #lost: unknown
  #asleep = false
  readonly #timers: NodeJS.Timeout[] = []

  constructor(parts: DriveParts) {
    this.#parts = parts
    const { store, types, loaded, claim, limits, log } = parts
    const { id, record, history } = loaded
    const use: Use = {
      signal: this.#ending.signal,
      principal: { id: record.owner, scopes: record.scopes },
      requestId: id,
      ...(record.trace === undefined ? {} : { trace: record.trace }),
    }
    this.#journal = new Journal({ store, id, fence: claim.fence, history, stored: parts.stored, lost: error => this.#lose(error), use: parts.use })
    this.#execution = new Execution({
      id,
      workflow: record.workflow,
      root: record.root ?? id,
      types,
      store,
      history,
      journal: this.#journal,
      limits,
      masks: loaded.masks,
      within: loaded.within,
      quiet: () => this.#fallAsleep(),
      onTime: step => void this.#onTime(step),
      onProgress: parts.progress,
      log,
      use,
    })
  }

  /** Works on the run until it ends, waits for long, or is another's. */
  async run(): Promise<Left> {
    this.#setTimers()
    try {
      return await this.#execution.work(() => this.#whole())
    } catch (error) {
      if (this.#lost !== undefined) return { how: 'lost' }
      if (error instanceof Stopped) return await this.#left()
      throw error
    } finally {
      for (const timer of this.#timers) clearTimeout(timer)
    }
  }

  /** News has come: an answer, an event, a cancel. */
  take(news: readonly { readonly key: string; readonly news: News }[]): void {
    for (const { key, news: one } of news) this.#takeOne(key, one)
    // what nobody waits for is stored too
    void this.#journal.stored().catch(() => {})
  }

  /** Begins nothing more: what runs ends first. */
  stop(): void {
    this.#execution.stop()
  }

  /** What runs is given up: it is run again where it may be. */
  abandon(): void {
    this.#execution.stop()
    this.#ending.abort(new Stopped('the process ends'))
  }

  async #whole(): Promise<Left> {
    const { history, record } = this.#parts.loaded
    if (history.length === 0) this.#journal.add({ t: 'started', at: record.createdAt })
    else this.#journal.add({ t: 'resumed', at: Date.now() })
    if (history.undoing) return this.#undone(history.undoing)
    try {
      const result = await walk(this.#execution, this.#root())
      await this.#parts.loaded.checkResult(result)
      return await this.#end({ status: 'completed', result: this.#execution.masked(result) })
    } catch (error) {
      if (this.#lost !== undefined || error instanceof Stopped) throw error
      return await this.#undone(this.#execution.masked(errorOf(this.#ending.signal.aborted ? this.#ending.signal.reason : error)))
    }
  }

  #root() {
    const { graph, definition, secrets, record } = this.#parts.loaded
    const { input, parameters, workflow, createdAt } = record
    const about = { id: this.#execution.id, workflow, started_at: new Date(createdAt).toISOString() }
    const vars = { input, parameters, run: about, secrets }
    return newFrame({ path: '', graph, vars, ledger: new Ledger(definition.budget), signal: this.#ending.signal })
  }

  async #undone(error: ErrorTold): Promise<Left> {
    const { history } = this.#parts.loaded
    if (history.undoing) await this.#replay()
    if (this.#execution.undoable.length === 0) return this.#end({ status: 'failed', error })
    if (!history.undoing) this.#journal.add({ t: 'undoing', at: Date.now(), error })
    await this.#journal.stored()
    const left = await undo(this.#execution, error, new AbortController().signal)
    const details = left.length === 0 ? error.details : { ...error.details, not_undone: left }
    return this.#end({ status: 'failed', error: { ...error, details } })
  }

  /** Walks what was done once more, to know what there is to undo. */
  async #replay(): Promise<void> {
    await walk(this.#execution, this.#root()).catch((error: unknown) => {
      if (this.#execution.isStopped) throw error
    })
  }

  async #end(how: Pick<RunRecord, 'status' | 'result' | 'error'>): Promise<Left> {
    const { loaded } = this.#parts
    const at = Date.now()
    const record: RunRecord = {
      ...loaded.record,
      ...how,
      waiting: [],
      updatedAt: at,
      finishedAt: at,
      ranMs: this.#ranMs(),
      ended: endedOf(loaded.history, loaded.record.nodes, how.status === 'completed'),
    }
    this.#journal.add({ t: 'over', at, ...how })
    this.#journal.with(this.#put(record))
    await this.#journal.stored()
    return { how: 'ended', record }
  }

  #put(record: RunRecord): StoreOp {
    return { op: 'put', collection: RUNS, key: this.#execution.id, value: record as unknown as Json }
  }

  #ranMs(): number {
    return this.#parts.loaded.record.ranMs + Date.now() - this.#begun
  }

  // -- sleep

  /** All that goes on waits: for long, or somebody wakes it soon. */
  #fallAsleep(): void {
    const next = this.#execution.waits.nextAt
    if (next !== undefined && next - Date.now() < SHORT_WAIT_MS) return
    this.#asleep = true
    this.#execution.stop()
  }

  /** It was stopped: asleep, or because the process ends. */
  async #left(): Promise<Left> {
    if (!this.#asleep) {
      await this.#journal.stored()
      return { how: 'stopped' }
    }
    const { record } = this.#parts.loaded
    const waiting = waitingIn(this.#parts.loaded.history)
    const expires = record.createdAt + this.#parts.limits.maxAgeMs
    const due = Math.min(expires, ...waiting.flatMap(({ until }) => (until === undefined ? [] : [until])), ...retriesIn(this.#parts.loaded.history))
    this.#journal.with(this.#put({ ...record, waiting, updatedAt: Date.now(), ranMs: this.#ranMs() }))
    await this.#journal.stored()
    return { how: 'asleep', due }
  }

  /** The time of a step that waits has come: unless somebody has answered just now, and was told that the answer counts. */
  async #onTime(step: string): Promise<void> {
    const { store, use } = this.#parts
    const last = this.#parts.loaded.history.steps.get(step)?.last
    if (last?.t !== 'asleep' || !last.ask) return void this.#execution.waits.wake(step, { by: 'time' })
    const key = answerKey(this.#execution.id, step)
    const value: Json = { kind: 'expired', step, at: Date.now() }
    const taken = await store.batch([{ op: 'put', collection: INBOX, key, value, ifVersion: 0 }], {}, use).catch(() => undefined)
    if (taken) this.#wakeOnce(key, step, { by: 'time' })
  }

  #takeOne(key: string, news: News): void {
    if (news.kind === 'cancel') {
      this.#journal.with({ op: 'delete', collection: INBOX, key })
      this.fail(cancelled())
    } else if (news.kind === 'event') {
      this.#journal.with({ op: 'delete', collection: INBOX, key })
      this.#journal.add({ t: 'event', at: news.at, name: news.name, data: news.data })
      this.#execution.waits.tell(news.name, news.data)
    } else {
      this.#wakeOnce(key, news.step, news.kind === 'answer' ? { by: 'answer', data: news.value } : { by: 'time' })
    }
  }

  /** The first word on a step is the last: it leaves the inbox together with what the step makes of it. */
  #wakeOnce(key: string, step: string, woken: Woken): void {
    if (this.#execution.come.has(step)) return
    this.#journal.with({ op: 'delete', collection: INBOX, key })
    this.#execution.come.set(step, woken)
    this.#execution.waits.wake(step, woken)
  }

  // -- ends

  #setTimers(): void {
    const { limits, loaded } = this.#parts
    const left = limits.runTimeoutMs - loaded.record.ranMs
    this.#timers.push(setTimeout(() => this.fail(runLate(limits.runTimeoutMs)), Math.max(0, left)))
    if (loaded.record.createdAt + limits.maxAgeMs <= Date.now()) this.fail(runOld(`${limits.maxAgeMs} ms`))
  }

  /** Aborts what runs, and has the run fail with this. */
  fail(error: Error): void {
    this.#ending.abort(error)
  }

  #lose(error: unknown): void {
    if (this.#lost !== undefined) return
    this.#lost = error
    this.#parts.log.warn({ run: this.#execution.id, ...told(error) }, 'a run is left: what it does cannot be stored')
    this.#execution.stop()
    this.#ending.abort(new Stopped('lost'))
  }
}

export const answerKey = (run: string, step: string) => `${run}/a/${step}`

/** What waits, as the log has it. */
export function waitingIn({ steps }: History): RunRecord['waiting'] {
  return [...steps].flatMap(([step, { last, pause }]) => {
    if (last.t !== 'asleep' || pause?.t !== 'asleep') return []
    const { at, until, event, ask } = pause
    const what = { ...(until === undefined ? {} : { until }), ...(event === undefined ? {} : { event }), ...(ask === undefined ? {} : { ask }) }
    return [{ step, node: nodeOf(step), since: at, ...what }]
  })
}

const retriesIn = ({ steps }: History) => [...steps.values()].flatMap(({ last }) => (last.t === 'again' ? [last.due] : []))

/** The name of a step's node. */
export const nodeOf = (step: string) => step.slice(step.lastIndexOf('/') + 1).replace(/#\d+$/, '')

/** The nodes of the outermost graph that are done, in the order they were first done. */
export function completedNodes({ steps }: History): string[] {
  const done = [...steps].filter(([step, { last }]) => last.t === 'done' && !step.includes('/'))
  return [...new Set(done.toSorted(([, a], [, b]) => a.order - b.order).map(([step]) => nodeOf(step)))]
}

function endedOf(history: History, nodes: number, isWhole: boolean): NonNullable<RunRecord['ended']> {
  const { calls, tokens } = spentIn(history)
  const done = completedNodes(history)
  return { completedNodes: done, progress: isWhole ? 1 : progressOf(done.length, nodes), calls, tokens }
}

const MOST = 0.99

/** The share of the nodes of the outermost graph that have been done: it never falls, and is 1 only at the end. */
export const progressOf = (done: number, nodes: number): number => Math.min(MOST, nodes === 0 ? 0 : done / nodes)
