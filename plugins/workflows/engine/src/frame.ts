import type { Budget, Json, PublicError } from '@svc/core/contracts'
import type { ExpressionScope } from '@svc/workflow-lang'
import type { CompiledGraph } from './compiled.ts'
import type { Spent } from './history.ts'
import { toPublicError } from './errors.ts'

/** A running graph. */
export interface Frame {
  /** The prefix of the step names: `''`, or `each/3/`. */
  readonly path: string
  readonly graph: CompiledGraph
  /** Variables of its expressions. `nodes` holds outputs by node, including those of outer graphs. */
  readonly scope: Record<string, unknown> & { readonly nodes: Record<string, Json>; error?: PublicError }
  readonly ledger: Ledger
  readonly signal: AbortSignal
  /** Whether it has ended and is walked only to find out what was done. */
  readonly isPast: boolean
}

/** Initial values of a frame. */
export interface FrameStart {
  readonly path: string
  readonly graph: CompiledGraph
  readonly vars: ExpressionScope
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

/** A step failed, and no node of its graph catches the error. */
export class StepFailed extends Error {
  readonly error: PublicError
  constructor(error: PublicError) {
    super(error.message)
    this.error = error
  }
}

/** Stops a run in this process without ending it: it sleeps, another worker has it, or the process exits. Not a failure, so it is not logged. */
export class Stopped extends Error {}

/** How a run continues as new: the output of the node. */
export interface Continuation {
  readonly input: Json
  /** Null: those of the run. */
  readonly parameters: Json
  readonly definition: 'same' | 'current'
}

/** Ends a run that continues as new. */
export class Continued extends Error {
  readonly how: Continuation
  constructor(how: Continuation) {
    super('the run continues as new')
    this.how = how
  }
}

/** A child that the fork no longer needs. */
export class Dropped extends Error {}

/** The public error of a thrown value. */
export const errorOf = (error: unknown): PublicError => (error instanceof StepFailed ? error.error : toPublicError(error))

const KINDS = ['calls', 'tokens', 'cost'] as const
type Amounts = { [Kind in (typeof KINDS)[number]]: number }

/** An amount for each kind. */
const eachKind = (of: (kind: keyof Amounts) => number): Amounts => ({
  calls: of('calls'),
  tokens: of('tokens'),
  cost: of('cost'),
})

/**
 * The remaining budget. Of nested ledgers the tightest limit counts. Parallel children get shares and return the rest, so they
 * never exceed the budget together.
 */
export class Ledger {
  readonly #left: Amounts
  readonly #parent: Ledger | undefined

  constructor(
    {
      tool_calls: calls = Number.POSITIVE_INFINITY,
      tokens = Number.POSITIVE_INFINITY,
      cost = Number.POSITIVE_INFINITY,
    }: Budget = {},
    parent?: Ledger
  ) {
    this.#left = { calls, tokens, cost }
    this.#parent = parent
  }

  /** A nested ledger. */
  within(budget: Budget | undefined): Ledger {
    return budget ? new Ledger(budget, this) : this
  }

  get left(): Amounts {
    const outer = this.#parent?.left
    return eachKind(kind => (outer ? Math.min(this.#left[kind], outer[kind]) : this.#left[kind]))
  }

  /** Whether it has no limit. */
  get isEndless(): boolean {
    const { left } = this
    return KINDS.every(kind => left[kind] === Infinity)
  }

  /** The remaining budget as nodes receive it. */
  get allowance(): Budget {
    const { calls, tokens, cost } = this.left
    return {
      ...(calls < Infinity ? { tool_calls: Math.max(0, calls) } : {}),
      ...(tokens < Infinity ? { tokens: Math.max(0, tokens) } : {}),
      ...(cost < Infinity ? { cost: Math.max(0, cost) } : {}),
    }
  }

  spend(spent: Spent): void {
    for (const kind of KINDS) this.#left[kind] -= spent[kind] ?? 0
    this.#parent?.spend(spent)
  }

  /** The share of a child while `running` children share the budget. `close` returns the rest. */
  share(running: number): { readonly ledger: Ledger; close(): void } {
    const { left } = this
    if (this.isEndless) return { ledger: this, close: () => {} }
    const given = eachKind(kind => shareOf(left[kind], Math.max(1, running), kind))
    const ledger = new Ledger({ tool_calls: given.calls, tokens: given.tokens, cost: given.cost })
    this.spend(finite(given))
    return { ledger, close: () => this.spend(negative(finite(ledger.left))) }
  }
}

/** Tool calls and tokens are whole. */
function shareOf(left: number, running: number, kind: keyof Amounts): number {
  if (left === Infinity) return left
  return Math.max(0, kind === 'cost' ? left / running : Math.ceil(left / running))
}

const finite = (amounts: Amounts): Amounts => eachKind(kind => (amounts[kind] === Infinity ? 0 : amounts[kind]))
const negative = (amounts: Amounts): Amounts => eachKind(kind => -amounts[kind])
