import type { Log, SlotView, CallContext } from '@svc/core'
import type { NodeStep, RunQueue, Store, WorkflowNode } from '@svc/core/contracts'
import type { DriveParts } from './drive-parts.ts'
import type { Entry } from './entries.ts'
import type { History } from './history.ts'
import type { Loader } from './loader.ts'
import type { RunRecord } from './space.ts'

export interface WorkerParts {
  readonly store: Store
  readonly queue: RunQueue
  readonly loader: Loader
  readonly types: SlotView<WorkflowNode>
  readonly limits: DriveParts['limits']
  /** Runs at once. */
  readonly atOnce: number
  /** What a run has stored, for those who read along here. */
  readonly stored: (id: string, entries: readonly Entry[], history: History) => void
  readonly progress: (id: string, step: string, node: string, progress: Extract<NodeStep, { readonly type: 'progress' }>) => void
  readonly ended: (id: string, record: RunRecord) => void
  readonly log: Log
  readonly lasting: CallContext
}

/** A run that was made here: nothing of it has to be read. */
export interface Made {
  readonly record: RunRecord
  readonly history: History
}
