import type { Log, SlotView, CallContext } from '@svc/core'
import type { Fence, NodeStep, Store, WorkflowNode } from '@svc/core/contracts'
import type { Entry } from './entries.ts'
import type { ExecutionLimits } from './execution-parts.ts'
import type { Letter } from './inbox.ts'
import type { Loaded } from './loader.ts'
import type { InitialCommit } from './initial-commit.ts'
import type { RunRecord } from './space.ts'

export interface DriveParts {
  readonly store: Store
  readonly types: SlotView<WorkflowNode>
  /** What proves that the run is this process's. */
  readonly fence: () => Promise<Fence>
  /** Of a run that begins here, its first write. */
  readonly opening: InitialCommit | undefined
  readonly loaded: Loaded
  readonly limits: ExecutionLimits & { readonly runTimeoutMs: number; readonly maxAgeMs: number }
  readonly letters: () => Promise<readonly Letter[]>
  readonly stored: (entries: readonly Entry[], first: number) => void
  readonly progress: (step: string, node: string, progress: Extract<NodeStep, { readonly type: 'progress' }>) => void
  readonly log: Log
  readonly ctx: CallContext
}

/** How a run was left: it has ended, waits, or goes on elsewhere; or there was nothing to do, since it is over or deleted. */
export type Left =
  | { readonly how: 'ended'; readonly record: RunRecord }
  | { readonly how: 'asleep'; readonly due: number }
  | { readonly how: 'lost' | 'stopped' | 'over' | 'gone' }
