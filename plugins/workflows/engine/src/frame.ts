import type { Budget, Json, PublicError } from '@svc/core/contracts'
import type { Scope } from '@svc/workflow-lang'
import type { CompiledGraph } from './compiled.ts'
import type { Spent } from './history.ts'
import { toPublicError } from './errors.ts'

/** A graph that runs. */
export interface Frame {
  /** What the names of its steps begin with: `''`, or `each/3/`. */
  readonly path: string
  readonly graph: CompiledGraph
  /** What its expressions can name; `nodes` are outputs by node, those of the graphs round it too. */
  readonly scope: Record<string, unknown> & { readonly nodes: Record<string, Json>; error?: PublicError }
  readonly ledger: Ledger
  readonly signal: AbortSignal
  /** It has ended, and is only walked to know what was done in it. */
  readonly isPast: boolean
}

/** What a frame begins with. */
export interface FrameStart {
  readonly path: string
  readonly graph: CompiledGraph
  readonly vars: Scope
  readonly nodes?: Readonly<Record<string, Json>>
  readonly ledger: Ledger
  readonly signal: AbortSignal
  readonly isPast?: boolean
}

export const newFrame = ({ path, graph, vars, nodes = {}, ledger, signal, isPast = false }: FrameStart): Frame => ({
  path,
  graph,
  scope: { ...vars, nodes: { ...nodes } },
  ledger: ledger.within(graph.budget),
  signal,
  isPast,
})

/** A step has failed, and nothing catches it in its graph. */
export class StepFailed extends Error {
  readonly error: PublicError
  constructor(error: PublicError) {
    super(error.message)
    this.error = error
  }
}

/** Why a run stops here without having ended: it sleeps, another has it, or the process ends. Not a failure: nothing is written of it. */
export class Stopped extends Error {}

/** A child that is not needed any more. */
export class Dropped extends Error {}

/** An error as a run tells it. */
export const errorOf = (error: unknown): PublicError => (error instanceof StepFailed ? error.error : toPublicError(error))

const KINDS = ['calls', 'tokens'] as const
type Left = { calls: number; tokens: number }

/**
 * What may still be spent. Of several ledgers one within the other the tightest counts; children that run at once get a share each, and give back what they
 * do not need, so that together they never spend more than there is.
 */
export class Ledger {
  readonly #left: Left
  readonly #parent: Ledger | undefined

  constructor({ tool_calls = Number.POSITIVE_INFINITY, tokens = Number.POSITIVE_INFINITY }: Budget = {}, parent?: Ledger) {
    this.#left = { calls: tool_calls, tokens }
    this.#parent = parent
  }

  /** A ledger within this one. */
  within(budget: Budget | undefined): Ledger {
    return budget ? new Ledger(budget, this) : this
  }

  get left(): Spent {
    const outer = this.#parent?.left
    return outer
      ? { calls: Math.min(this.#left.calls, outer.calls), tokens: Math.min(this.#left.tokens, outer.tokens) }
      : { ...this.#left }
  }

  /** Whether nothing limits it. */
  get isEndless(): boolean {
    const { calls, tokens } = this.left
    return calls === Infinity && tokens === Infinity
  }

  /** What is left, as nodes are told. */
  get allowance(): Budget {
    const { calls, tokens } = this.left
    return {
      ...(calls < Infinity ? { tool_calls: Math.max(0, calls) } : {}),
      ...(tokens < Infinity ? { tokens: Math.max(0, tokens) } : {}),
    }
  }

  spend(spent: Spent): void {
    for (const kind of KINDS) this.#left[kind] -= spent[kind]
    this.#parent?.spend(spent)
  }

  /** The share of one of `waiting` children, `running` of which share what is left; the first get what does not divide. `close` gives back what is left of it. */
  share(running: number): { readonly ledger: Ledger; close(): void } {
    const { calls, tokens } = this.left
    if (this.isEndless) return { ledger: this, close: () => {} }
    const part = (left: number) => (left === Infinity ? left : Math.max(0, Math.ceil(left / Math.max(1, running))))
    const given = { calls: part(calls), tokens: part(tokens) }
    const ledger = new Ledger({ tool_calls: given.calls, tokens: given.tokens })
    this.spend(finite(given))
    return { ledger, close: () => this.spend(negative(finite(ledger.left))) }
  }
}

const finite = ({ calls, tokens }: Spent): Spent => ({
  calls: calls === Infinity ? 0 : calls,
  tokens: tokens === Infinity ? 0 : tokens,
})
const negative = ({ calls, tokens }: Spent): Spent => ({ calls: -calls, tokens: -tokens })
