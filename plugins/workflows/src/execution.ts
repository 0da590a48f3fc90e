import type { Log, SlotView, Use } from '@svc/core'
import type { Body, Json, NodeStep, Store, WorkflowNode } from '@svc/core/contracts'
import type { Scope, Template } from '@svc/workflow'
import { type CompiledGraph, type CompiledNode, compileBody } from './compiled.ts'
import type { EntryOf, Spent } from './entries.ts'
import { resultTooLarge, runTooLarge, told, tooManySteps } from './errors.ts'
import { type Frame, StepFailed, Stopped } from './frame.ts'
import type { History } from './history.ts'
import type { Journal } from './journal.ts'
import { type Masks, sizeUpTo } from './masks.ts'
import { type Sleep, type Woken, Waits } from './waits.ts'

export interface ExecutionLimits {
  readonly nodeTimeoutMs: number
  readonly maxSteps: number
  readonly maxOutputBytes: number
  readonly maxRunBytes: number
}

export interface ExecutionParts {
  readonly id: string
  readonly workflow: string
  /** What idempotency keys begin with. */
  readonly root: string
  readonly types: SlotView<WorkflowNode>
  readonly store: Store
  readonly history: History
  readonly journal: Journal
  readonly limits: ExecutionLimits
  readonly masks: Masks
  /** A workflow within this one, as it was when the run began: its graph, what it can name, and the check of its result. */
  readonly within: (workflow: string, input: Json, parameters: Json | undefined) => Promise<Inner>
  /** Nothing works any more, all that goes on waits. */
  readonly quiet: () => void
  /** The time of a waiting step has come. */
  readonly onTime: (step: string) => void
  readonly onProgress: (step: string, node: string, progress: Extract<NodeStep, { readonly type: 'progress' }>) => void
  readonly log: Log
  readonly use: Use
}

/** A workflow within another. */
export interface Inner {
  readonly graph: CompiledGraph
  readonly vars: Scope
  readonly check: (out: Json) => Promise<void>
}

/** A run while this process works on it: what its steps share. */
export class Execution {
  readonly #parts: ExecutionParts
  readonly waits: Waits
  /** What has come for steps, perhaps before they wait for it. */
  readonly come = new Map<string, Woken>()
  readonly #spent = new Map<string, { calls: number; tokens: number }>()
  readonly #made = new WeakMap<object, CompiledGraph>()
  #busy = 0
  #steps = 0
  #bytes = 0
  #watch: NodeJS.Immediate | undefined
  #isStopped = false

  constructor(parts: ExecutionParts) {
    this.#parts = parts
    this.waits = new Waits(parts.onTime)
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
  get use(): Use {
    return this.#parts.use
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
    this.#watch ??= setImmediate(() => {
      this.#watch = undefined
      if (this.#busy === 0 && this.waits.size > 0) this.#parts.quiet()
    })
  }

  /** Nothing begins here any more; what waits leaves. */
  stop(): void {
    this.#isStopped = true
    this.waits.end(new Stopped('the run goes on elsewhere, or later'))
  }
  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Lets a step wait; what it waits for may have come already. */
  sleep(sleep: Sleep & { readonly ask?: unknown }, signal: AbortSignal): Promise<Woken> {
    if (this.#isStopped) throw new Stopped('the run goes on elsewhere, or later')
    const there = this.#comeFor(sleep)
    if (there) return Promise.resolve(there)
    return this.idle(() => this.waits.sleep(sleep, signal))
  }

  #comeFor({ step, event }: Sleep): Woken | undefined {
    const come = this.come.get(step)
    if (come) return come
    const told = event === undefined ? undefined : this.history.events.find(({ name }) => name === event)
    return told && { by: 'event', data: told.data }
  }

  // -- what steps ask

  countStep(): void {
    if (this.#isStopped) throw new Stopped('the run goes on elsewhere, or later')
    this.#steps += 1
    if (this.#steps > this.limits.maxSteps) throw this.failed(tooManySteps(this.limits.maxSteps))
  }

  /** A step that is done: what has to be remembered to undo it, and what it has answered in all. */
  kept(frame: Frame, node: CompiledNode, { s, out, branch }: EntryOf<'done'>): { readonly output: Json; readonly branch?: string } {
    if (node.compensate) this.undoable.push({ step: s, graph: node.compensate, frame, output: out })
    return { output: out, ...(branch === undefined ? {} : { branch }) }
  }
  /** What is done and can be undone, with the frame it was done in. */
  readonly undoable: { readonly step: string; readonly graph: CompiledGraph; readonly frame: Frame; readonly output: Json }[] = []

  isRepeatable({ repeatable, type }: CompiledNode): boolean {
    return repeatable ?? this.types.get(type)?.repeatable ?? false
  }

  evaluate(what: Template, scope: Scope): Json {
    return what(scope)
  }

  /** The settings of a node as they may be told; what cannot be evaluated is told when it is run. */
  shown({ settings }: CompiledNode, { scope }: Frame): Json {
    try {
      return settings(this.#parts.masks.isEmpty ? scope : { ...scope, secrets: this.#parts.masks.shown })
    } catch {
      return null
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

  failed(error: Error): StepFailed {
    return new StepFailed(told(error))
  }

  /** A body that a node made. */
  compiled(body: Body): CompiledGraph {
    const made = this.#made.get(body) ?? compileBody(this.types, body)
    this.#made.set(body, made)
    return made
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

