import type { CallContext, SlotView } from '@svc/core'
import type { Body, Json, NodeStep, NodeTask, WorkflowNode } from '@svc/core/contracts'
import type { Scope, Template } from '@svc/workflow-lang'
import { Calls, type Sleep, Waits, type Woken } from './waits.ts'
import { compileBody, type CompiledGraph, type CompiledNode } from './compiled.ts'
import type { EntryOf, History, Spent } from './history.ts'
import { resultTooLarge, runTooLarge, tooManySteps, toPublicError } from './errors.ts'
import { type Frame, StepFailed, Stopped } from './frame.ts'
import type { Journal } from './journal.ts'
import { type Redaction, sizeUpTo } from './redaction.ts'

export interface ExecutionLimits {
  readonly nodeTimeoutMs: number
  readonly maxSteps: number
  readonly maxOutputBytes: number
  readonly maxRunBytes: number
}

interface ExecutionParts {
  readonly id: string
  readonly workflow: string
  /** What idempotency keys begin with. */
  readonly root: string
  readonly types: SlotView<WorkflowNode>
  readonly history: History
  readonly journal: Journal
  readonly limits: ExecutionLimits
  readonly masks: Redaction
  /** Whether anything of it can be undone. */
  readonly hasUndo: boolean
  /** A workflow within this one, as it was when the run began: its graph, what it can name, and the check of its result. */
  readonly within: (workflow: string, input: Json, parameters: Json | undefined) => Promise<Inner>
  /** Walks a graph to its end: given from outside, since what walks also runs here. */
  readonly walkGraph: (frame: Frame) => Promise<Json>
  /** What a run fails with that is too old: it waits no more, not even to undo. */
  readonly tooOld: () => Error | undefined
  /** Nothing works any more, all that goes on waits. */
  readonly quiet: () => void
  /** The time of a waiting step has come. */
  readonly onTime: (step: string) => void
  readonly onProgress: (step: string, node: string, progress: Extract<NodeStep, { readonly type: 'progress' }>) => void
  readonly ctx: CallContext
}

/** A workflow within another. */
export interface Inner {
  readonly graph: CompiledGraph
  readonly vars: Scope
  /** What it answers, with defaults filled in. Throws what is wrong with it. */
  readonly check?: (out: Json) => Promise<Json>
}

/** A run while this process works on it: what its steps share. */
export class Execution {
  readonly #parts: ExecutionParts
  readonly waits: Waits
  readonly calls = new Calls()
  readonly #spent = new Map<string, { calls: number; tokens: number }>()
  readonly #made = new WeakMap<object, CompiledGraph>()
  #busy = 0
  #steps = 0
  #bytes = 0
  #isWatched = false
  #isStopped = false
  readonly #isNew: boolean

  constructor(parts: ExecutionParts) {
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
  get journal(): Journal {
    return this.#parts.journal
  }
  get limits(): ExecutionLimits {
    return this.#parts.limits
  }
  get ctx(): CallContext {
    return this.#parts.ctx
  }
  get hasUndo(): boolean {
    return this.#parts.hasUndo
  }

  // -- who works

  /** Does something that counts as work. */
  async work<T>(does: () => Promise<T>): Promise<T> {
    this.#busy += 1
    try {
      return await does()
    } finally {
      this.#rest()
    }
  }

  /** Waits for something that does not. */
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
    // the next step of a way begins within this turn of the loop
    if (this.#isWatched) return
    this.#isWatched = true
    setImmediate(() => {
      this.#isWatched = false
      if (this.#busy === 0 && this.waits.size > 0) this.#parts.quiet()
    })
  }

  /** Nothing begins here any more; what waits leaves. */
  stop(): void {
    this.#isStopped = true
    if (this.waits.size > 0) this.waits.end(new Stopped('the run goes on elsewhere, or later'))
  }
  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Throws where nothing may begin any more. */
  goesOn(): void {
    if (this.#isStopped) throw new Stopped('the run goes on elsewhere, or later')
  }

  /** Lets a step wait; what it waits for may have come already. */
  async sleep(sleep: Sleep, signal: AbortSignal): Promise<Woken> {
    this.goesOn()
    const old = this.#parts.tooOld()
    if (old) throw old
    const kept = sleep.event === undefined ? undefined : this.history.events.find(({ name }) => name === sleep.event)
    if (kept) return { by: 'event', data: kept.data, event: kept.id }
    return this.idle(() => this.waits.sleep(sleep, signal))
  }

  // -- what steps ask

  countStep(): void {
    this.#steps += 1
    if (this.#steps > this.limits.maxSteps) throw this.failed(tooManySteps(this.limits.maxSteps))
  }

  /** A step that is done: what has to be remembered to undo it, and what it has answered in all. */
  kept(
    frame: Frame,
    node: CompiledNode,
    { s, out, branch }: EntryOf<'done'>
  ): { readonly output: Json; readonly branch?: string } {
    if (node.compensate) this.undoable.push({ step: s, graph: node.compensate, frame, output: out })
    return { output: out, ...(branch === undefined ? {} : { branch }) }
  }
  /** What is done and can be undone, with the frame it was done in. */
  readonly undoable: { readonly step: string; readonly graph: CompiledGraph; readonly frame: Frame; readonly output: Json }[] = []

  /** Whether a node may be run again when nobody knows how far it came; `itself`: it is called and told so. */
  repeatable({ repeatable, type }: CompiledNode): boolean | 'itself' {
    return repeatable ?? this.types.get(type)?.repeatable ?? false
  }

  /**
   * Whether nobody need know that a node begins: it may be run again, and nothing waits to be stored that must be before the next step. Only where the run
   * began: a node that ends its process is counted from then on.
   */
  mayBeginUnstored(node: CompiledNode): boolean {
    return this.journal.isSettled && this.mayGoOnUnstored(node)
  }

  /** Whether a node may go on with what its children made before that is stored: it may be run again, and they with it, for what follows waits for all of it. */
  mayGoOnUnstored(node: CompiledNode): boolean {
    return this.#isNew && this.repeatable(node) === true
  }

  evaluate(what: Template, scope: Scope): Json {
    return what(scope)
  }

  /** The settings of a node, evaluated, and as they may be told. What cannot be evaluated, or may not be told, is so once more when the node is called. */
  shown(settings: Template, { scope }: Frame): { readonly early?: NodeTask['settings']; readonly input: Json } {
    const { masks } = this.#parts
    try {
      if (!masks.isEmpty) return { input: shortened(settings({ ...scope, secrets: masks.shown })) }
      const early = settings(scope) as NodeTask['settings']
      return { early, input: shortened(early as Json) }
    } catch {
      return { input: null }
    }
  }

  masked<T>(value: T): T {
    return this.#parts.masks.hide(value)
  }

  checkSize(node: string, output: Json): void {
    const { maxOutputBytes, maxRunBytes } = this.limits
    const size = sizeUpTo(output, maxOutputBytes)
    if (size > maxOutputBytes) throw resultTooLarge(node, maxOutputBytes)
    this.#bytes += size
    if (this.#bytes > maxRunBytes) throw runTooLarge(maxRunBytes)
  }

  /** The same for what is stored besides. */
  checkLarge(node: string, value: Json): void {
    const limit = ROOM * this.limits.maxOutputBytes
    if (sizeUpTo(value, limit) > limit) throw resultTooLarge(node, limit)
  }

  failed(error: Error): StepFailed {
    return new StepFailed(toPublicError(error))
  }

  /** A body that a node made. */
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

  // -- what steps tell

  spend(step: string, frame: Frame, { tokens, tool_calls = 0 }: Extract<NodeStep, { readonly type: 'spent' }>): void {
    const spent = { calls: tool_calls, tokens: tokens ? tokens.input + tokens.output : 0 }
    const sum = this.#spent.get(step) ?? { calls: 0, tokens: 0 }
    this.#spent.set(step, { calls: sum.calls + spent.calls, tokens: sum.tokens + spent.tokens })
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

/** Inputs larger than this are not kept: they are made of outputs, which are. */
const LARGEST_INPUT = 1_048_576
const shortened = (input: Json): Json =>
  sizeUpTo(input, LARGEST_INPUT) > LARGEST_INPUT ? `(more than ${LARGEST_INPUT} bytes)` : input

/** Lists of children and results of graphs are made of a few outputs. */
const ROOM = 2
