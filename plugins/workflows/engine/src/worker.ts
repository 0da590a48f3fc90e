import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, codeOf, type Log, messageOf, type SlotView, type StartSpan } from '@svc/core'
import type { Json, NodeStep, RunClaim, RunQueue, Store, WorkflowNode } from '@svc/core/contracts'
import { timeOf } from '@svc/storage-kit'
import { durationMs } from '@svc/workflow-lang'
import { type RunExecutorOptions, type RunOutcome, RunExecutor } from './run-executor.ts'
import { type Entry, type History, metricsOf } from './history.ts'
import { engineBroke, toPublicError } from './errors.ts'
import { moveLetters } from './inbox.ts'
import { InitialCommit } from './initial-commit.ts'
import type { Loader } from './loader.ts'
import { LOG, type RunRecord, RUNS } from './space.ts'
import { unboundOps, withAffinity, type Workplaces } from './workplaces.ts'

interface WorkerDependencies {
  readonly store: Store
  readonly queue: RunQueue
  readonly loader: Loader
  readonly types: SlotView<WorkflowNode>
  /** The nodes whose files runs use. */
  readonly workplaces: Workplaces
  readonly limits: RunExecutorOptions['limits']
  /** Maximum number of concurrent runs. */
  readonly atOnce: number
  /** Called with the stored entries of a run. */
  readonly stored: (id: string, record: RunRecord, entries: readonly Entry[], history: History) => void
  readonly progress: (id: string, step: string, node: string, progress: Extract<NodeStep, { readonly type: 'progress' }>) => void
  readonly ended: (id: string, record: RunRecord) => void
  /** Prepares the run that continues another as new. */
  readonly next: (id: string, ...how: Parameters<RunExecutorOptions['next']>) => ReturnType<RunExecutorOptions['next']>
  readonly log: Log
  readonly span: StartSpan
  readonly lasting: CallContext
}

/** A run that was created in this process, so that it need not be loaded. */
interface NewRun {
  readonly record: RunRecord
  readonly history: History
}

/** How often claims are renewed. */
const KEEP_MS = 10_000
/** The delay before a run is retried that cannot be executed now. */
const LATER_MS = 5_000
const AGAIN_MS = 1_000
/** A queue that has not failed for so long works, also without a run to take. Longer than a call of a lost database lasts. */
const CALM_MS = 15_000
const LONGEST_MS = 2 ** 31 - 1
/** A run is queued while it is stored. A run that is older and not in the store was not stored. */
const STORING_MS = 60_000

/** Executes runs: those that start here, and those from the queue. */
export class RunWorker {
  readonly #parts: WorkerDependencies
  readonly #active = new Map<string, Active>()
  readonly #taking = new AbortController()
  readonly #takers = new Set<Promise<void>>()
  #keeping: NodeJS.Timeout | undefined
  #room: (() => void) | undefined
  #isLeaving = false
  #problem: string | undefined

  constructor(parts: WorkerDependencies) {
    this.#parts = parts
  }

  /** Number of runs that this worker executes. */
  get size(): number {
    return this.#active.size
  }
  /** Whether it has capacity for another run. */
  get hasRoom(): boolean {
    return !this.#isLeaving && this.#active.size < this.#parts.atOnce
  }
  /** Why it cannot take runs from the queue at the moment. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** The record of a run that was created here, until the run is returned to the queue. */
  recordOf(id: string): RunRecord | undefined {
    const active = this.#active.get(id)
    return active?.isLeft ? undefined : active?.record
  }

  /** Takes runs from the queue until it is stopped. */
  take(): Promise<void> {
    const { lasting } = this.#parts
    return this.#taker(this.#takeAll(AbortSignal.any([lasting.signal, this.#taking.signal])))
  }

  /** Executes only this run whenever no other worker does, until it has ended or the signal aborts. */
  only(id: string, { signal: ending }: CallContext): Promise<void> {
    const { lasting } = this.#parts
    return this.#taker(this.#takeOne(id, AbortSignal.any([lasting.signal, this.#taking.signal, ending])))
  }

  #taker(taking: Promise<void>): Promise<void> {
    const ended = taking.catch(() => {}).finally(() => this.#takers.delete(ended))
    this.#takers.add(ended)
    return taking
  }

  async #takeAll(signal: AbortSignal): Promise<void> {
    const { queue, lasting, log } = this.#parts
    while (!signal.aborted) {
      const calm = setTimeout(() => (this.#problem = undefined), CALM_MS).unref()
      try {
        for await (const claim of queue.take({ ...lasting, signal })) {
          this.#problem = undefined
          this.begin(claim)
          await this.#untilRoom()
          if (signal.aborted) return
        }
      } catch (err) {
        if (signal.aborted) return
        this.#problem = messageOf(err)
        log.warn({ err }, 'failed to take runs from the queue')
        clearTimeout(calm)
        await sleep(AGAIN_MS, undefined, { signal }).catch(() => {})
      } finally {
        clearTimeout(calm)
      }
    }
  }

  async #takeOne(id: string, signal: AbortSignal): Promise<void> {
    const { queue, lasting } = this.#parts
    for await (const claim of queue.takeOne(id, { ...lasting, signal })) {
      this.begin(claim)
      await this.#active.get(id)?.ended.promise
    }
  }

  async #untilRoom(): Promise<void> {
    while (this.#active.size >= this.#parts.atOnce) await new Promise<void>(resolve => (this.#room = resolve))
  }

  /** Executes a run that was claimed or that starts here. */
  begin(held: RunClaim | InitialCommit, made?: NewRun): void {
    this.#keeping ??= setInterval(() => void this.#keep(), KEEP_MS).unref()
    const active = newActive(held, made)
    this.#active.set(active.id, active)
    void this.#work(active, made).finally(() => {
      // the same run can be claimed again by now
      if (this.#active.get(active.id) === active) this.#active.delete(active.id)
      this.#room?.()
      active.ended.resolve()
    })
  }

  /** Takes the new notices of a run. Returns false if this worker does not execute the run. */
  async news(id: string): Promise<boolean> {
    const active = this.#active.get(id)
    if (!active || active.isLeft) return false
    if (!active.executor) return (active.hasNews = true)
    if (!active.executor.isTaking) return false
    return active.executor.take(await this.#parts.loader.news(id, this.#parts.lasting))
  }

  /** Starts no further step and waits for running nodes. Aborts them after the time limit. */
  async drain(limitMs: number): Promise<void> {
    this.#isLeaving = true
    this.#taking.abort()
    const timer = setTimeout(() => this.#abandon(), Math.min(limitMs, LONGEST_MS))
    try {
      while (this.#active.size > 0 || this.#takers.size > 0) {
        for (const { executor } of this.#active.values()) executor?.stop()
        await Promise.all([...this.#takers, ...[...this.#active.values()].map(({ ended }) => ended.promise)])
      }
    } finally {
      clearTimeout(timer)
      clearInterval(this.#keeping)
    }
  }

  #abandon(): void {
    for (const { executor } of this.#active.values()) executor?.abandon()
  }

  async #work(active: Active, made: NewRun | undefined): Promise<void> {
    const { lasting, log } = this.#parts
    let left: RunOutcome
    try {
      left = (await this.#executor(active, made)) ?? { how: 'lost' }
    } catch (error) {
      left = await this.#broke(active, error)
    }
    active.isLeft = true
    await this.#leave(active, left).catch((err: unknown) => {
      if (left.how !== 'lost' && !lasting.signal.aborted)
        log.warn({ err, run: active.id }, 'failed to return a run to the queue: it continues when its lease expires')
    })
  }

  async #executor(active: Active, made: NewRun | undefined): Promise<RunOutcome> {
    const { loader, lasting, store, types, workplaces, limits, log, span } = this.#parts
    const { id, claim, initialCommit } = active
    const known = made?.record ?? (await loader.record(id, lasting))
    if (!known) return Date.now() - timeOf(id) < STORING_MS ? { how: 'asleep', due: Date.now() + AGAIN_MS } : { how: 'gone' }
    if (known.status !== 'running') return { how: 'over' }
    const { pausedAt, held: _held, ...record } = known
    if (pausedAt !== undefined && !(await this.#mustEnd(id, record)))
      return { how: 'asleep', due: record.createdAt + limits.maxAgeMs }
    const history = made?.history ?? (await loader.history(id, lasting))
    active.bound = history.bound
    const place = await this.#placeOf(id, record, history)
    if (place === 'elsewhere') return { how: 'asleep', due: Date.now() }
    const loaded = await loader.ready(id, record, history, lasting)
    const letters = () => loader.news(id, lasting)
    const { previousRun } = record
    // of a worker that died after it had ended the previous run
    if (previousRun !== undefined) await moveLetters(store, previousRun, id, await loader.news(previousRun, lasting), lasting)
    const executor = new RunExecutor({
      store,
      types,
      node: workplaces.node,
      isWorkplaceLost: place === 'lost',
      fence: async () => (await claim()).fence,
      initialCommit,
      loaded,
      limits: { ...limits, ...timeoutOf(loaded.definition.timeout) },
      letters,
      stored: entries => this.#parts.stored(id, record, entries, history),
      progress: (step, node, progress) => this.#parts.progress(id, step, node, progress),
      next: (...how) => this.#parts.next(id, ...how),
      log,
      span,
      ctx: lasting,
    })
    active.executor = executor
    if (!made || active.hasNews) executor.take(await letters())
    if (this.#isLeaving) executor.stop()
    return executor.run()
  }

  /** Where the files of a run are. Its end does not wait for a node that is gone. */
  async #placeOf(id: string, record: RunRecord, { bound: { node } }: History): Promise<'here' | 'elsewhere' | 'lost'> {
    if (node === undefined) return 'here'
    const whereabouts = await this.#parts.workplaces.whereabouts(node)
    if (whereabouts !== 'absent') return whereabouts
    return (await this.#mustEnd(id, record)) ? 'lost' : 'elsewhere'
  }

  /** Whether a run that cannot go on is cancelled or too old. */
  async #mustEnd(id: string, record: RunRecord): Promise<boolean> {
    const { loader, limits, lasting } = this.#parts
    if (record.createdAt + limits.maxAgeMs <= Date.now()) return true
    return (await loader.news(id, lasting)).some(({ news }) => news.kind === 'cancel')
  }

  /** Retries later if the store is unavailable. Otherwise fails the run, because a retry would fail the same way. */
  async #broke({ id, claim }: Active, error: unknown): Promise<RunOutcome> {
    const { lasting, log } = this.#parts
    const code = codeOf(error) ?? ''
    if (lasting.signal.aborted || code.startsWith('STORE_')) {
      log.warn({ err: error, run: id, request_id: id }, 'failed to execute a run; svc retries it')
      return { how: 'asleep', due: Date.now() + LATER_MS }
    }
    log.error({ err: error, run: id, request_id: id }, 'failed to execute a run; svc marks it as failed')
    try {
      return await failRun(this.#parts, await claim(), code === '' ? engineBroke(messageOf(error)) : error)
    } catch {
      return { how: 'asleep', due: Date.now() + LATER_MS }
    }
  }

  async #leave({ id, claim: held, initialCommit, bound }: Active, left: RunOutcome): Promise<void> {
    const { queue, workplaces, lasting, ended } = this.#parts
    if (left.how === 'ended') ended(id, left.record)
    if (initialCommit?.isOver) return
    const claim = await held()
    if (left.how === 'ended' || left.how === 'over' || left.how === 'gone') return queue.leave(claim, 'ended', lasting)
    const affinity = workplaces.node === undefined ? undefined : bound?.node
    if (affinity !== undefined) await workplaces.note(id, affinity)
    const due = left.how === 'asleep' ? left.due : Date.now()
    await queue.leave(claim, affinity === undefined ? { due } : { due, affinity }, lasting)
  }

  async #keep(): Promise<void> {
    const { queue, lasting } = this.#parts
    await Promise.all(
      [...this.#active.values()].map(async ({ id, claim, executor }) => {
        try {
          await queue.keep(await claim(), lasting)
          await this.news(id)
        } catch (error) {
          if (codeOf(error) === 'STORE_FENCED') executor?.lose(error)
        }
      })
    )
  }
}

const timeoutOf = (timeout: string | undefined) => {
  const ms = timeout === undefined ? undefined : durationMs(timeout)
  return ms === undefined ? {} : { runTimeoutMs: ms }
}

/** A run that this worker executes. */
interface Active {
  readonly id: string
  /** The claim on the run. Throws if the run was not stored or claimed. */
  readonly claim: () => Promise<RunClaim>
  /** The first write, for a run that starts in this worker. */
  readonly initialCommit: InitialCommit | undefined
  readonly record: RunRecord | undefined
  readonly ended: PromiseWithResolvers<void>
  executor: RunExecutor | undefined
  /** The node whose files the run uses, once its log is read. */
  bound: History['bound'] | undefined
  /** Whether a notice came before the run was read. */
  hasNews: boolean
  /** Whether the worker is returning the run. The queue then keeps new notices. */
  isLeft: boolean
}

const newActive = (held: RunClaim | InitialCommit, made: NewRun | undefined): Active => ({
  id: held.id,
  claim: held instanceof InitialCommit ? () => held.claim() : async () => held,
  initialCommit: held instanceof InitialCommit ? held : undefined,
  record: made?.record,
  ended: Promise.withResolvers(),
  executor: undefined,
  bound: undefined,
  hasNews: false,
  isLeft: false,
})

interface FailingOptions {
  readonly store: Store
  readonly loader: Loader
  readonly lasting: CallContext
}

/** Ends a run that cannot be loaded. Throws if the store rejects the write. */
async function failRun(
  { store, loader, lasting }: FailingOptions,
  { id, fence }: RunClaim,
  reason: unknown
): Promise<RunOutcome> {
  const record = await loader.record(id, lasting)
  if (record?.status !== 'running') return { how: 'over' }
  const [at, error, history] = [Date.now(), toPublicError(reason), await loader.history(id, lasting)]
  const ended = metricsOf(history, record.nodes, false)
  const failed: RunRecord = { ...record, status: 'failed', error, waiting: [], updatedAt: at, finishedAt: at, ended }
  const over = { t: 'over', at, status: 'failed', error } as unknown as Json
  const append = { op: 'append', log: LOG, id, values: [over], ifLength: history.length } as const
  const put = { op: 'put', collection: RUNS, key: id, value: withAffinity(failed, history) as unknown as Json } as const
  await store.batch([append, put, ...unboundOps(id, history)], { fence }, lasting)
  return { how: 'ended', record: failed }
}
