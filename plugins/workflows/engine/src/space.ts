import type { CallContext } from '@svc/core'
import type { Json, PublicError, RunStatus, Space, Store, StoreOp, Waiting, WorkflowDefinition } from '@svc/core/contracts'

export const [RUNS, DEFINITIONS, INBOX, KEYS, PAUSES, PLACES, ABSENCES, LOG] = [
  'workflow_runs',
  'workflow_definitions',
  'workflow_inbox',
  'workflow_keys',
  'workflow_pauses',
  'workflow_places',
  'workflow_absences',
  'workflow_log',
] as const

/**
 * The collections of the plugin: runs, the definitions they started with (by digest), notices for runs, idempotency keys, paused
 * workflows, runs that wait for the node with their files, since when a node is gone, and the log of each run.
 */
export const SPACE: Space = {
  name: 'workflows',
  version: 1,
  collections: {
    [RUNS]: {
      indexes: {
        by_owner: ['owner', 'createdAt'],
        by_time: ['createdAt'],
        by_status: ['status', 'updatedAt'],
      },
    },
    [DEFINITIONS]: { indexes: { by_time: ['at'] } },
    [INBOX]: {},
    [KEYS]: { indexes: { by_time: ['at'] } },
    [PAUSES]: { watched: true },
    [PLACES]: {},
    [ABSENCES]: {},
  },
  logs: [LOG],
}

/** A stored run; times are Unix milliseconds. It is written when the run starts, sleeps and ends. */
export interface RunRecord {
  readonly workflow: string
  /** Digests of its definition and of its subworkflows, by name. */
  readonly definitions: { readonly [name: string]: string }
  readonly status: RunStatus
  /** Number of nodes in its outermost graph. */
  readonly nodes: number
  readonly owner: string
  readonly scopes: readonly string[]
  readonly trace?: string
  readonly traceState?: string
  readonly input: Json
  readonly parameters: Json
  readonly createdAt: number
  readonly updatedAt: number
  readonly finishedAt?: number
  /** Maximum number of concurrent runs of its workflow. */
  readonly concurrency?: number
  readonly waiting: readonly Waiting[]
  readonly result?: Json
  readonly error?: PublicError
  /** The id of the first run in a chain of retries. It is the prefix of the idempotency keys. */
  readonly root?: string
  readonly retryOf?: string
  /** The run that it replays, and the step from which it does. */
  readonly replayOf?: string
  readonly replayFrom?: string
  /** Number of entries at the beginning of its log that a replay took over. Their steps are not compensated: it did not run them. */
  readonly reused?: number
  /** Since when it is paused, and whether it is because its workflow was paused when it started. */
  readonly pausedAt?: number
  readonly held?: true
  /** The run that continues it as new, the run that it continues, and the first of them. */
  readonly nextRun?: string
  readonly previousRun?: string
  readonly firstRun?: string
  /** The latest retry or replay of a failed run. Without one, it is a dead letter. */
  readonly continuedBy?: string
  /** The node whose files it had used when it slept or ended. Its log is always current. */
  readonly affinity?: string
  /** A summary at its end, so that lists do not read the log. */
  readonly ended?: {
    readonly completedNodes: readonly string[]
    readonly progress: number
    readonly calls: number
    readonly tokens: number
    readonly cost?: number
  }
}

/** A stored definition, and the day of the last run that started with it. */
export interface StoredDefinition {
  readonly definition: WorkflowDefinition
  readonly at: number
}

/** A paused workflow. */
export interface StoredPause {
  readonly at: number
  readonly by: string
}

/** A notice for a run: an answer, an event, a cancellation or a pause. */
export type ChangeNotice =
  | { readonly kind: 'answer'; readonly step: string; readonly value: Json; readonly at: number; readonly by: string }
  /** The time of a question is over without an answer. */
  | { readonly kind: 'expired'; readonly step: string; readonly at: number }
  | { readonly kind: 'event'; readonly name: string; readonly data: Json; readonly at: number }
  | { readonly kind: 'cancel'; readonly at: number; readonly by: string }
  | { readonly kind: 'pause'; readonly at: number; readonly by: string }

/** The queue group that limits concurrent runs of a workflow. */
export const groupOf = ({ workflow, concurrency }: RunRecord) =>
  concurrency === undefined ? {} : { group: { name: workflow, limit: concurrency } }

/** Maximum number of late notices that are deleted with a run. */
const MOST_LETTERS = 200

/** Operations that delete a run, its log and its late notices. */
export async function removalOf(store: Store, id: string, ctx: CallContext): Promise<StoreOp[]> {
  const { records } = await store.range(INBOX, { from: `${id}/`, to: `${id}0`, limit: MOST_LETTERS }, ctx)
  const letters = records.map(({ key }) => ({ op: 'delete' as const, collection: INBOX, key }))
  return [...letters, { op: 'drop', log: LOG, id }, { op: 'delete', collection: RUNS, key: id }]
}
