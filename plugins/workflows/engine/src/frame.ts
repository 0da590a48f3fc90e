import type { PublicError, Json } from '@svc/core/contracts'
import type { Scope } from '@svc/workflow-lang'
import type { CompiledGraph } from './compiled.ts'
import { toPublicError } from './errors.ts'
import type { Ledger } from './ledger.ts'

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
