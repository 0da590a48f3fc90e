import type { PublicError, Json, RunStatus, Space, Waiting, WorkflowDefinition } from '@svc/core/contracts'

export const [RUNS, DEFINITIONS, INBOX, KEYS, LOG] = [
  'workflow_runs',
  'workflow_definitions',
  'workflow_inbox',
  'workflow_keys',
  'workflow_log',
] as const

/** What the plugin keeps: runs, the definitions they began with (by digest), news for runs, idempotency keys, and the log of each run. */
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
  },
  logs: [LOG],
}

/** A run as it is stored; times are Unix milliseconds. It is written when the run begins, when it falls asleep, and when it ends. */
export interface RunRecord {
  readonly workflow: string
  /** Digests of its definition and of the workflows within, by name. */
  readonly definitions: { readonly [name: string]: string }
  readonly status: RunStatus
  /** Nodes of its outermost graph. */
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
  /** So many runs of its workflow work at a time. */
  readonly concurrency?: number
  readonly waiting: readonly Waiting[]
  readonly result?: Json
  readonly error?: PublicError
  /** The first of the runs that it goes on from: what the idempotency keys of its steps begin with. */
  readonly root?: string
  readonly retryOf?: string
  /** Figures at its end, so that lists need no log. */
  readonly ended?: {
    readonly completedNodes: readonly string[]
    readonly progress: number
    readonly calls: number
    readonly tokens: number
  }
}

/** A definition as it is stored, and when a run was last begun with it, to the day. */
export interface StoredDefinition {
  readonly definition: WorkflowDefinition
  readonly at: number
}

/** News for a run: an answer, an event, a cancel. */
export type ChangeNotice =
  | { readonly kind: 'answer'; readonly step: string; readonly value: Json; readonly at: number; readonly by: string }
  /** The time of a question has run out, before anybody answered. */
  | { readonly kind: 'expired'; readonly step: string; readonly at: number }
  | { readonly kind: 'event'; readonly name: string; readonly data: Json; readonly at: number }
  | { readonly kind: 'cancel'; readonly at: number; readonly by: string }
