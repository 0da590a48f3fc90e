import type { CallContext, SlotView, StartSpan } from '@svc/core'
import type { Body, Json, NodeStep, NodeTask, WorkflowNode } from '@svc/core/contracts'
import type { ExpressionScope, Template } from '@svc/workflow-lang'
import { NodeCalls, type Sleep, Waits, type Woken } from './waits.ts'
import { compileBody, type CompiledGraph, type CompiledNode } from './compiled.ts'
import { addSpent, type EntryOf, firstStepOf, type History, type Spent, type SpentSum } from './history.ts'
import { resultTooLarge, runTooLarge, tooManySteps, toPublicError, workplaceLost } from './errors.ts'
import { type Frame, StepFailed, Stopped } from './frame.ts'
import type { RunJournal } from './journal.ts'
import { type Redaction, sizeUpTo } from './redaction.ts'

export interface ExecutionLimits {
  readonly nodeTimeoutMs: number
  readonly maxSteps: number
  readonly maxOutputBytes: number
  readonly maxRunBytes: number
}

interface ExecutionOptions {
  readonly id: string
  readonly workflow: string
  /** The prefix of idempotency keys. */
  readonly root: string
  readonly types: SlotView<WorkflowNode>
  /** The node to which a run is bound that uses its files. Undefined: runs are not bound. */
  readonly node: string | undefined
  readonly history: History
  readonly journal: RunJournal
  readonly limits: ExecutionLimits
  readonly redaction: Redaction
  /** Whether the definition has compensations. */
  readonly hasUndo: boolean
  /** Number of entries that a replay took over. Their steps are not compensated. */
  readonly reused: number
  /** A subworkflow as it was when the run started. */
  readonly within: (workflow: string, input: Json, parameters: Json | undefined) => Promise<Inner>
  /** Walks a graph to its end. Passed in, because the walker itself depends on the execution. */
  readonly walkGraph: (frame: Frame) => Promise<Json>
  /** The error for a run that is too old, else undefined. Such a run does not wait, not even to compensate. */
  readonly tooOld: () => Error | undefined
  /** Called when all remaining steps wait. */
  readonly quiet: () => void
  /** Called when the time of a waiting step is over. */
  readonly onTime: (step: string) => void
  readonly onProgress: (step: string, node: string, progress: Extract<NodeStep, { readonly type: 'progress' }>) => void
  readonly span: StartSpan
  readonly ctx: CallContext
}

/** A subworkflow. */
export interface Inner {
  readonly graph: CompiledGraph
  readonly vars: ExpressionScope
  /** Fills in the defaults of the result. Throws if the result does not match its schema. */
  readonly check?: (out: Json) => Promise<Json>
}

/** State that the steps of a run share while this process executes it. */
export class Execution {
  readonly #parts: ExecutionOptions
  readonly waits: Waits
  readonly calls = new NodeCalls()
  readonly #spent = new Map<string, SpentSum>()
  readonly #made = new WeakMap<object, CompiledGraph>()
  #busy = 0
  #steps = 0
  #bytes = 0
  #isWatched = false
  #isStopped = false
  readonly #isNew: boolean

  constructor(parts: ExecutionOptions) {
    this.#parts = parts
    this.waits = new Waits(parts.onTime)
    this.#isNew = parts.history.length === 0
    this.#steps = parts.history.steps.size
    for (const { last } of parts.history.steps.values())
      if (last.t === 'done') this.#bytes += sizeUpTo(last.out, parts.limits.maxOutputBytes)
  }

  get id(): string {
    return this.#parts.id
  }
  get workflow(): string {
    return this.#parts.workflow
  }
  get root(): string {
    return this.#parts.root
  }
  get types(): SlotView<WorkflowNode> {
    return this.#parts.types
  }
  get history(): History {
    return this.#parts.history
  }
  get journal(): RunJournal {
    return this.#parts.journal
  }
  get limits(): ExecutionLimits {
    return this.#parts.limits
  }
  get ctx(): CallContext {
    return this.#parts.ctx
  }
  get span(): StartSpan {
    return this.#parts.span
  }
  get hasUndo(): boolean {
    return this.#parts.hasUndo
  }

  /** Runs a function that counts as work. */
  async work<T>(does: () => Promise<T>): Promise<T> {
    this.#busy += 1
    try {
      return await does()
    } finally {
      this.#rest()
    }
  }

  /** Waits without counting as work. */
  async idle<T>(waits: () => Promise<T>): Promise<T> {
    const waited = waits()
    this.#rest()
    try {
      return await waited
    } finally {
      this.#busy += 1
    }
  }

  #rest(): void {
    this.#busy -= 1
    if (this.#busy > 0) return
    // the next step of a path starts within this turn of the event loop
    if (this.#isWatched) return
    this.#isWatched = true
    setImmediate(() => {
      this.#isWatched = false
      if (this.#busy === 0 && this.waits.size > 0) this.#parts.quiet()
    })
  }

  /** Starts no further step and ends all waits. */
  stop(): void {
    this.#isStopped = true
    if (this.waits.size > 0) this.waits.end(new Stopped('another process continues the run, or it continues later'))
  }
  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Throws if no further step can start. */
  goesOn(): void {
    if (this.#isStopped) throw new Stopped('another process continues the run, or it continues later')
  }

  /** Lets a step wait. Returns at once for an event that already came. */
  async sleep(sleep: Sleep, signal: AbortSignal): Promise<Woken> {
    this.goesOn()
    const old = this.#parts.tooOld()
    if (old) throw old
    const kept = sleep.event === undefined ? undefined : this.history.events.find(({ name }) => name === sleep.event)
    if (kept) return { by: 'event', data: kept.data, event: kept.id }
    return this.idle(() => this.waits.sleep(sleep, signal))
  }

  countStep(): void {
    this.#steps += 1
    if (this.#steps > this.limits.maxSteps) throw this.failed(tooManySteps(this.limits.maxSteps))
  }

  /** Remembers the compensation of a completed step of this run and returns its result. */
  kept(
    frame: Frame,
    node: CompiledNode,
    { s, out, branch }: EntryOf<'done'>
  ): { readonly output: Json; readonly branch?: string } {
    const isOwn = (this.history.steps.get(s)?.order ?? 0) > this.#parts.reused
    if (node.compensate && isOwn) this.undoable.push({ step: s, graph: node.compensate, frame, output: out })
    return { output: out, ...(branch === undefined ? {} : { branch }) }
  }
  /** Completed steps with a compensation, and the frames they ran in. */
  readonly undoable: { readonly step: string; readonly graph: CompiledGraph; readonly frame: Frame; readonly output: Json }[] = []

  /** Whether a node can run again after an interruption of unknown progress. `itself`: the node is called and decides. */
  repeatable({ repeatable, type }: CompiledNode): boolean | 'itself' {
    return repeatable ?? this.types.get(type)?.repeatable ?? false
  }

  /**
   * Whether a node can start before its `begun` entry is stored: it can run again, and no earlier result is unsaved. Only in the
   * process that started the run, because interruptions are counted after a takeover.
   */
  mayBeginUnstored(node: CompiledNode): boolean {
    return this.journal.isSettled && this.mayGoOnUnstored(node)
  }

  /** Whether a node can continue with the results of its children before they are stored: it and its children can run again. */
  mayGoOnUnstored(node: CompiledNode): boolean {
    return this.#isNew && this.repeatable(node) === true
  }

  evaluate(what: Template, scope: ExpressionScope): Json {
    return what(scope)
  }

  /** The evaluated settings of a node, and their redacted form for the log. If evaluation fails, the call of the node fails the same way. */
  shown(settings: Template, { scope }: Frame): { readonly early?: NodeTask['settings']; readonly input: Json } {
    const { redaction } = this.#parts
    try {
      if (!redaction.isEmpty) return { input: shortened(settings({ ...scope, secrets: redaction.shown })) }
      const early = settings(scope) as NodeTask['settings']
      return { early, input: shortened(early as Json) }
    } catch {
      return { input: null }
    }
  }

  masked<T>(value: T): T {
    return this.#parts.redaction.hide(value)
  }

  checkSize(node: string, output: Json): void {
    const { maxOutputBytes, maxRunBytes } = this.limits
    const size = sizeUpTo(output, maxOutputBytes)
    if (size > maxOutputBytes) throw resultTooLarge(node, maxOutputBytes)
    this.#bytes += size
    if (this.#bytes > maxRunBytes) throw runTooLarge(maxRunBytes)
  }

  /** Checks the size of other stored values. */
  checkLarge(node: string, value: Json): void {
    const limit = ROOM * this.limits.maxOutputBytes
    if (sizeUpTo(value, limit) > limit) throw resultTooLarge(node, limit)
  }

  failed(error: Error): StepFailed {
    return new StepFailed(toPublicError(error))
  }

  /** Compiles a body that a node created. */
  compiled(body: Body): CompiledGraph {
    const made = this.#made.get(body) ?? compileBody(this.types, body)
    this.#made.set(body, made)
    return made
  }

  walkGraph(frame: Frame): Promise<Json> {
    return this.#parts.walkGraph(frame)
  }
  within(workflow: string, input: Json, parameters: Json | undefined): Promise<Inner> {
    return this.#parts.within(workflow, input, parameters)
  }

  /** Binds the run to this node. Throws WORKPLACE_LOST if it has used the files of another one. */
  useWorkplace(step: string): void {
    const { node: here } = this.#parts
    if (here === undefined) return
    const { node, steps } = this.history.bound
    if (node !== undefined && node !== here) throw workplaceLost(node, firstStepOf(steps))
    if (!steps.has(step)) this.journal.add({ t: 'bound', at: Date.now(), by: step, node: here })
  }

  spend(step: string, frame: Frame, { tokens, tool_calls = 0, cost }: Extract<NodeStep, { readonly type: 'spent' }>): void {
    const used = { calls: tool_calls, tokens: tokens ? tokens.input + tokens.output : 0 }
    const spent: Spent = cost === undefined ? used : { ...used, cost }
    const sum = this.#spent.get(step) ?? { calls: 0, tokens: 0 }
    addSpent(sum, spent)
    this.#spent.set(step, sum)
    frame.ledger.spend(spent)
  }

  takeSpent(step: string): Spent | undefined {
    const spent = this.#spent.get(step)
    if (spent) this.#spent.delete(step)
    return spent
  }

  progress(step: string, node: string, progress: Extract<NodeStep, { readonly type: 'progress' }>): void {
    this.#parts.onProgress(step, node, progress)
  }
}

/** Larger inputs are not stored: they consist of outputs, which are. */
const LARGEST_INPUT = 1_048_576
const shortened = (input: Json): Json =>
  sizeUpTo(input, LARGEST_INPUT) > LARGEST_INPUT ? `(more than ${LARGEST_INPUT} bytes)` : input

/** Lists of children and results of graphs consist of a few outputs. */
const ROOM = 2
