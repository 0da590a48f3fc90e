import type { SlotView, CallContext } from '@svc/core'
import type { Json, NodeStep, WorkflowNode } from '@svc/core/contracts'
import type { Scope } from '@svc/workflow-lang'
import type { CompiledGraph } from './compiled.ts'
import type { Frame } from './frame.ts'
import type { History } from './history.ts'
import type { Journal } from './journal.ts'
import type { Redaction } from './redaction.ts'

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
