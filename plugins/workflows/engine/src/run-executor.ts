import { type CallContext, codeOf, type Log, type OpenSpan, type SlotView, type StartSpan } from '@svc/core'
import type { Fence, Json, NodeStep, PublicError, Store, StoreOp, WorkflowNode } from '@svc/core/contracts'
import { CONTINUE, END } from '@svc/workflow-lang'
import type { CompiledNode } from './compiled.ts'
import { duesIn, type Entry, type History, firstStepOf, metricsOf, UNDO, waitingIn, workedMs } from './history.ts'
import { branchMissing, continueWithin, REFUSED, runLate, tooManyVisits, tooOld, toPublicError, workplaceLost } from './errors.ts'
import { Execution, type ExecutionLimits } from './execution.ts'
import { type Continuation, Continued, errorOf, type Frame, Ledger, newFrame, Stopped } from './frame.ts'
import { cancelKey, Inbox, type Letter, pauseKey } from './inbox.ts'
import type { InitialCommit } from './initial-commit.ts'
import { RunJournal } from './journal.ts'
import type { Loaded } from './loader.ts'
import { INBOX, LOG, type RunRecord, RUNS } from './space.ts'
import { doStep } from './step.ts'
import { unboundOps, withAffinity } from './workplaces.ts'

export interface RunExecutorOptions {
  readonly store: Store
  readonly types: SlotView<WorkflowNode>
  /** The node to which a run is bound that uses its files. Undefined: runs are not bound. */
  readonly node: string | undefined
  /** Whether the node with the files of the run is gone. */
  readonly isWorkplaceLost: boolean
  /** Returns the fencing token that proves ownership of the run. */
  readonly fence: () => Promise<Fence>
  /** The first write of a run that starts here. */
  readonly initialCommit: InitialCommit | undefined
  readonly loaded: Loaded
  readonly limits: ExecutionLimits & { readonly runTimeoutMs: number; readonly maxAgeMs: number }
  readonly letters: () => Promise<readonly Letter[]>
  readonly stored: (entries: readonly Entry[], first: number) => void
  readonly progress: (step: string, node: string, progress: Extract<NodeStep, { readonly type: 'progress' }>) => void
  /** Prepares the run that continues this one. */
  readonly next: (history: History, record: RunRecord, how: Continuation, ctx: CallContext) => Promise<NextRun>
  readonly log: Log
  readonly span: StartSpan
  readonly ctx: CallContext
}

/** A run that continues another as new. */
export interface NextRun {
  readonly id: string
  /** The operations that create it. */
  readonly ops: readonly StoreOp[]
  /** Queues it for later, before it is stored: a worker that dies in between then loses nothing. */
  queue(): Promise<void>
  /** Lets it start, and hands it the notices that came meanwhile. */
  begin(): Promise<void>
}

/** How the executor left a run. `over` and `gone`: the run had already ended or was deleted. */
export type RunOutcome =
  | { readonly how: 'ended'; readonly record: RunRecord }
  | { readonly how: 'asleep'; readonly due: number }
  | { readonly how: 'lost' | 'stopped' | 'over' | 'gone' }

type Ending = Pick<RunRecord, 'status' | 'result' | 'error' | 'nextRun'>

/** Shorter waits keep the run in this process. */
const SHORT_WAIT_MS = 3_000
const LONGEST_MS = 2 ** 31 - 1

/** Executes a run in this process. */
export class RunExecutor {
  readonly #parts: RunExecutorOptions
  readonly #execution: Execution
  readonly #journal: RunJournal
  readonly #inbox: Inbox
  /** Aborts the nodes. The reason is the error of the run. */
  readonly #ending = new AbortController()
  /** Aborts compensations when the process exits or the run is lost. */
  readonly #leaving = new AbortController()
  #lost: unknown
  #asleep = false
  #isPausing = false
  #timer: NodeJS.Timeout | undefined
  /** The span of the run, from its start or wake-up to its end or sleep. */
  readonly #span: OpenSpan

  constructor(parts: RunExecutorOptions) {
    this.#parts = parts
    const { store, types, loaded, limits } = parts
    const { id, record, history, redaction, hasUndo } = loaded
    const runCtx: CallContext = {
      signal: this.#ending.signal,
      principal: { id: record.owner, scopes: record.scopes },
      requestId: id,
      ...(record.trace === undefined ? {} : { trace: record.trace }),
      ...(record.traceState === undefined ? {} : { traceState: record.traceState }),
    }
    const attributes = { 'svc.run.id': id, 'svc.workflow.name': record.workflow, 'gen_ai.operation.name': 'invoke_workflow' }
    this.#span = parts.span(`invoke_workflow ${record.workflow}`, runCtx, { root: true, attributes })
    const { ctx } = this.#span
    this.#journal = new RunJournal({
      store,
      id,
      fence: parts.fence,
      initialCommit: parts.initialCommit,
      history,
      stored: parts.stored,
      lost: error => this.lose(error),
      ctx: parts.ctx,
    })
    this.#execution = new Execution({
      id,
      workflow: record.workflow,
      root: record.root ?? id,
      types,
      node: parts.node,
      history,
      journal: this.#journal,
      limits,
      redaction,
      hasUndo,
      reused: record.reused ?? 0,
      within: loaded.within,
      walkGraph: frame => walkGraph(this.#execution, frame),
      span: parts.span,
      tooOld: () => tooOld(record, limits.maxAgeMs),
      quiet: () => this.#fallAsleep(),
      onTime: step => void this.#inbox.onTime(step),
      onProgress: parts.progress,
      ctx,
    })
    this.#inbox = new Inbox({
      store,
      execution: this.#execution,
      letters: parts.letters,
      fail: error => this.#fail(error),
      pause: () => this.#pause(),
      ctx: parts.ctx,
    })
  }

  /** Executes the run until it ends, sleeps, or is lost. */
  async run(): Promise<RunOutcome> {
    this.#setTimer()
    try {
      return this.#described(await this.#execution.work(() => this.#whole()))
    } catch (error) {
      return this.#described(await this.#stopped(error))
    } finally {
      this.#span.end()
      clearTimeout(this.#timer)
      this.#execution.calls.close()
      // notices that come from now on are for the next worker
      this.#execution.stop()
    }
  }

  /** Takes notices. Returns false if the run has stopped. */
  take(letters: readonly Letter[]): boolean {
    if (this.#execution.isStopped) return false
    this.#inbox.take(letters)
    return true
  }
  get isTaking(): boolean {
    return !this.#execution.isStopped
  }

  /** Starts no further step. Running nodes finish. */
  stop(): void {
    this.#execution.stop()
  }

  /** Aborts running nodes. Repeatable nodes run again later. */
  abandon(): void {
    this.#execution.stop()
    this.#ending.abort(new Stopped('the process ends'))
    this.#leaving.abort(new Stopped('the process ends'))
  }

  /** Stops a run that another worker owns or that cannot be stored. */
  lose(error: unknown): void {
    if (this.#lost !== undefined) return
    this.#lost = error
    this.#parts.log.warn(
      { run: this.#execution.id, request_id: this.#execution.id, ...toPublicError(error) },
      'a workflow run stops here: its log cannot be stored'
    )
    this.abandon()
  }

  /** Notes in the span how the run was left. */
  #described(outcome: RunOutcome): RunOutcome {
    const record = outcome.how === 'ended' ? outcome.record : undefined
    this.#span.set({ 'svc.run.status': record?.status ?? outcome.how })
    if (record?.error) this.#span.fail(record.error)
    return outcome
  }

  async #whole(): Promise<RunOutcome> {
    const { history } = this.#parts.loaded
    this.#journal.add({ t: history.length === 0 ? 'started' : 'resumed', at: Date.now() })
    if (history.undoing) return this.#undone(history.undoing)
    try {
      const result = await this.#parts.loaded.checkResult(await walkGraph(this.#execution, this.#root(false)))
      this.#execution.checkLarge('result', result)
      return await this.#end({ status: 'completed', result: this.#execution.masked(result) })
    } catch (error) {
      if (this.#lost !== undefined || error instanceof Stopped) throw error
      if (error instanceof Continued && !this.#ending.signal.aborted) return this.#continued(error.how)
      return await this.#undone(this.#execution.masked(errorOf(this.#ending.signal.aborted ? this.#ending.signal.reason : error)))
    }
  }

  #root(isPast: boolean) {
    const { graph, definition, secrets, record } = this.#parts.loaded
    const { input, parameters, workflow, createdAt } = record
    const about = { id: this.#execution.id, workflow, started_at: new Date(createdAt).toISOString() }
    const vars = { input, parameters, run: about, secrets }
    const signal = isPast ? this.#leaving.signal : this.#ending.signal
    return newFrame({ path: '', graph, vars, ledger: new Ledger(definition.budget), signal, isPast })
  }

  async #undone(error: PublicError): Promise<RunOutcome> {
    const { history, hasUndo } = this.#parts.loaded
    if (history.undoing) await walkGraph(this.#execution, this.#root(true)).catch(() => {})
    if (!hasUndo || this.#execution.undoable.length === 0) return this.#end({ status: 'failed', error })
    if (!history.undoing) this.#journal.add({ t: 'undoing', at: Date.now(), error })
    await this.#journal.stored()
    const left = await undo(this.#execution, error, this.#leaving.signal)
    return this.#end({ status: 'failed', error: notUndone(error, left) })
  }

  /** Ends the run and creates the next one in the same batch, so that exactly one of them goes on. */
  async #continued(how: Continuation): Promise<RunOutcome> {
    const { loaded, next: prepare } = this.#parts
    let next: NextRun
    try {
      next = await prepare(loaded.history, loaded.record, how, this.#execution.ctx)
    } catch (error) {
      if (codeOf(error)?.startsWith('STORE_') === true) throw error
      return this.#undone(this.#execution.masked(errorOf(error)))
    }
    await next.queue()
    // it was cancelled, or is too old, meanwhile
    if (this.#ending.signal.aborted) return this.#undone(this.#execution.masked(errorOf(this.#ending.signal.reason)))
    for (const op of next.ops) this.#journal.with(op)
    const outcome = await this.#end({ status: 'completed', result: null, nextRun: next.id })
    await next.begin()
    return outcome
  }

  async #end({ nextRun, ...how }: Ending): Promise<RunOutcome> {
    const record = this.#endedRecord(nextRun === undefined ? how : { ...how, nextRun })
    this.#journal.add({ t: 'over', at: record.updatedAt, ...how, ...(nextRun === undefined ? {} : { next: nextRun }) })
    this.#journal.end(this.#put(record))
    for (const op of unboundOps(this.#execution.id, this.#parts.loaded.history)) this.#journal.with(op)
    if (this.#ending.signal.aborted) this.#journal.with({ op: 'delete', collection: INBOX, key: cancelKey(this.#execution.id) })
    await this.#journal.stored()
    return { how: 'ended', record }
  }

  #endedRecord(how: Ending): RunRecord {
    const { record, history } = this.#parts.loaded
    const at = Date.now()
    return {
      ...record,
      ...how,
      waiting: [],
      updatedAt: at,
      finishedAt: at,
      ended: metricsOf(history, record.nodes, how.status === 'completed'),
    }
  }

  #put(record: RunRecord): StoreOp {
    return {
      op: 'put',
      collection: RUNS,
      key: this.#execution.id,
      value: withAffinity(record, this.#parts.loaded.history) as unknown as Json,
    }
  }

  /** Starts no further step. */
  #pause(): void {
    if (this.#ending.signal.aborted) return
    this.#isPausing = true
    this.#execution.stop()
  }

  /** Puts the run to sleep when all its steps wait, unless the next wait is short. */
  #fallAsleep(): void {
    const next = this.#execution.waits.nextAt
    if (next !== undefined && next - Date.now() < SHORT_WAIT_MS) return
    this.#asleep = true
    this.#execution.stop()
  }

  async #stopped(error: unknown): Promise<RunOutcome> {
    try {
      if (this.#lost === undefined && error instanceof Stopped) return await this.#left()
    } catch (thrown) {
      if (this.#lost === undefined) throw thrown
    }
    if (this.#lost === undefined) throw error
    return REFUSED.has(codeOf(this.#lost)) ? await this.#refused(this.#lost) : { how: 'lost' }
  }

  async #left(): Promise<RunOutcome> {
    if (this.#isPausing && !this.#ending.signal.aborted) return this.#paused()
    if (!this.#asleep) {
      await this.#journal.stored()
      return { how: 'stopped' }
    }
    const { record, history } = this.#parts.loaded
    const due = Math.min(record.createdAt + this.#parts.limits.maxAgeMs, ...duesIn(history))
    this.#journal.with(this.#put({ ...record, waiting: waitingIn(history), updatedAt: Date.now() }))
    await this.#journal.stored()
    return { how: 'asleep', due }
  }

  /** Stores the pause, unless it was taken back. */
  async #paused(): Promise<RunOutcome> {
    const { store, fence, ctx, loaded, limits } = this.#parts
    const { record, history, id } = loaded
    const at = Date.now()
    this.#journal.add({ t: 'paused', at })
    await this.#journal.stored()
    const paused = { ...record, waiting: waitingIn(history), updatedAt: at, pausedAt: at }
    const remove: StoreOp = { op: 'delete', collection: INBOX, key: pauseKey(id), ifVersion: 1 }
    try {
      await store.batch([this.#put(paused), remove], { fence: await fence() }, ctx)
    } catch (error) {
      if (codeOf(error) !== 'STORE_CONFLICT') throw error
      return { how: 'stopped' }
    }
    return { how: 'asleep', due: record.createdAt + limits.maxAgeMs }
  }

  /** Fails a run whose data the store rejects permanently. */
  async #refused(reason: unknown): Promise<RunOutcome> {
    const { store, fence, ctx, loaded } = this.#parts
    const error = notUndone(
      toPublicError(reason),
      this.#execution.undoable.map(({ step }) => step)
    )
    const record = this.#endedRecord({ status: 'failed', error })
    const over = { t: 'over', at: record.updatedAt, status: 'failed', error } as unknown as Json
    const append: StoreOp = { op: 'append', log: LOG, id: this.#execution.id, values: [over], ifLength: this.#journal.length }
    await store.batch(
      [append, this.#put(record), ...unboundOps(this.#execution.id, loaded.history)],
      { fence: await fence() },
      ctx
    )
    return { how: 'ended', record }
  }

  #setTimer(): void {
    const { limits, loaded, isWorkplaceLost } = this.#parts
    const left = limits.runTimeoutMs - workedMs(loaded.history)
    this.#timer = setTimeout(() => this.#fail(runLate(limits.runTimeoutMs)), Math.min(LONGEST_MS, Math.max(0, left)))
    const old = tooOld(loaded.record, limits.maxAgeMs)
    if (old) this.#fail(old)
    const { node, steps } = loaded.history.bound
    if (isWorkplaceLost && node !== undefined) this.#fail(workplaceLost(node, firstStepOf(steps)))
  }

  /** Aborts running nodes and fails the run with this error. */
  #fail(error: Error): void {
    this.#ending.abort(error)
  }
}

const notUndone = (error: PublicError, steps: readonly string[]): PublicError =>
  steps.length === 0 ? error : { ...error, details: { ...error.details, not_undone: steps } }

/** Runs the compensations of a failed run, the latest step first. Returns the steps whose compensation failed. */
async function undo(run: Execution, error: PublicError, signal: AbortSignal): Promise<readonly string[]> {
  const failed: string[] = []
  const orderOf = (step: string) => run.history.steps.get(step)?.order ?? 0
  for (const { step, graph, frame, output } of run.undoable.toSorted((a, b) => orderOf(b.step) - orderOf(a.step))) {
    const { nodes, ...vars } = frame.scope
    const path = `${UNDO}${step}/`
    const undoing = newFrame({ path, graph, vars: { ...vars, output, error }, nodes, ledger: new Ledger(), signal })
    try {
      await walkGraph(run, undoing)
    } catch (thrown) {
      if (thrown instanceof Stopped || signal.aborted) throw thrown
      failed.push(step)
    }
  }
  return failed
}

/** Walks a graph to its end. Steps in the log are not run again. Throws StepFailed. */
async function walkGraph(run: Execution, frame: Frame): Promise<Json> {
  const { graph, scope, path } = frame
  const visits = new Map<string, number>()
  let last: Json = null
  for (let name = graph.start; name !== END; ) {
    const node = graph.nodes[name]!
    const visit = (visits.get(name) ?? 0) + 1
    visits.set(name, visit)
    const step = visit === 1 ? path + name : `${path}${name}#${visit}`
    if (visit > node.maxVisits) throw run.failed(tooManyVisits(name, node.maxVisits))
    const outcome = await doStep(run, frame, node, step)
    if ('error' in outcome) {
      scope.error = outcome.error
      name = node.catch!
    } else {
      scope.nodes[name] = last = outcome.output
      if (node.type === CONTINUE) {
        if (path !== '') throw run.failed(continueWithin(name))
        if (!frame.isPast) throw new Continued(last as unknown as Continuation)
      }
      name = follow(run, node, outcome.branch)
    }
  }
  return graph.result && !frame.isPast ? run.evaluate(graph.result, scope) : last
}

function follow(run: Execution, { name, next, branches }: CompiledNode, branch: string | undefined): string {
  if (!branches) return next
  if (branch !== undefined && Object.hasOwn(branches, branch)) return branches[branch]!
  if (next !== END) return next
  throw run.failed(branchMissing(name, branch, Object.keys(branches)))
}
