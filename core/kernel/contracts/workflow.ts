import { defineSlot, type JsonSchema } from '@svc/core'
import type { CatchUp, Overlap } from './schedules.ts'
import type { Json } from './store.ts'

/** A duration: `250ms`, `30s`, `5m`, `2h`, `7d`. */
export type Duration = string

/** How a failed node is retried. */
export interface RetryPolicy {
  /** Total number of attempts, including the first. */
  readonly attempts: number
  /** Delay before the second attempt. Default `1s`. */
  readonly delay?: Duration
  /** Growth of the delay per attempt. Default 2. */
  readonly factor?: number
  /** Maximum delay. Default `1m`. */
  readonly max_delay?: Duration
  /** Error codes to retry. Absent: all but those of an invalid definition or input. */
  readonly on?: readonly string[]
}

/**
 * One node of a graph: these keys and those of its type. Text contains expressions as `${{ … }}`. Text that is only an
 * expression has its value, of any type.
 */
export interface NodeDefinition {
  readonly type: string
  readonly description?: string
  /** The following node. Absent or `end`: the path ends here. */
  readonly next?: string
  /** The following node by branch. Keys can be `true` and `false`. */
  readonly branches?: { readonly [branch: string]: string }
  readonly retry?: RetryPolicy
  /** Time limit of one attempt. */
  readonly timeout?: Duration
  /** The node that follows a failure. Its expressions have `error`. */
  readonly catch?: string
  /** Undoes the node when the run fails after it completed. Its expressions have `output`, the output of this node. */
  readonly compensate?: NodeDefinition | Graph
  /** Whether it can run again after an unknown outcome. Default: that of its type. */
  readonly repeatable?: boolean
  /** Maximum number of visits in one graph. Default 100. */
  readonly max_visits?: number
  /** The body, for a node type with one. */
  readonly do?: Body
  /** The bodies by name, for a node type with several. */
  readonly bodies?: { readonly [name: string]: Body }
  readonly [setting: string]: unknown
}

/** The body of a node: a node or a graph. */
export type Body = NodeDefinition | Graph

/** A graph of nodes. One of them runs at a time. */
export interface Graph {
  /** The first node. Default: the first in the file. */
  readonly start?: string
  readonly nodes: { readonly [name: string]: NodeDefinition }
  /** The result, with expressions. Default: the output of the last node. */
  readonly result?: Json
  /** Budget of all nodes together. */
  readonly budget?: Budget
}

/** A budget. An absent value has no limit. */
export interface Budget {
  readonly tool_calls?: number
  readonly tokens?: number
  /** In the currency of the prices of models. Models without a price are refused. */
  readonly cost?: number
}

/** When svc starts runs of a workflow. Either `cron` or `every`. As in `ScheduleSpec` besides. */
export interface WorkflowSchedule {
  readonly description?: string
  readonly cron?: string
  readonly every?: Duration
  readonly time_zone?: string
  readonly jitter?: Duration
  readonly catch_up?: CatchUp
  /** While the run of an earlier tick has not ended. */
  readonly overlap?: Overlap
  readonly input?: Json
  readonly parameters?: Json
  /** The id of the principal that owns the runs. Default: `workflow:<name>`. Ignored in plugins: their runs belong to `plugin:<package>`. */
  readonly owner?: string
}

/** A read-only query: a value with expressions over the state of a run. */
export interface WorkflowQuery {
  readonly description?: string
  readonly value: Json
}

/** A workflow in YAML, JSON or TypeScript. */
export interface WorkflowDefinition extends Graph {
  /** `[a-z][a-z0-9_-]*`, at most 64 characters. */
  readonly name: string
  readonly description?: string
  readonly version?: string
  /** JSON Schema of the input, an object. */
  readonly inputs?: JsonSchema
  /** JSON Schemas of parameters by name. A parameter without `default` is required. */
  readonly parameters?: { readonly [name: string]: JsonSchema }
  /** JSON Schema of `result`. */
  readonly outputs?: JsonSchema
  /** Names of the used secrets of `workflows.secrets`. */
  readonly secrets?: readonly string[]
  /** Maximum number of concurrent runs. Others wait. */
  readonly concurrency?: number
  /** Time limit of a run, without waits for people, events and time. */
  readonly timeout?: Duration
  /** The schedule `workflow.<name>` exists while the definition is loaded and has no problems. */
  readonly schedule?: WorkflowSchedule
  /** JSON Schemas of the data of events, by name. With it, a run refuses other events. */
  readonly signals?: { readonly [name: string]: JsonSchema }
  /** What callers can read of a run, by name. */
  readonly queries?: { readonly [name: string]: WorkflowQuery }
}

/** Workflows of plugins by name. Items are data only. */
export const WorkflowDefinitions = defineSlot<WorkflowDefinition>('workflows', { api: 1, methods: {} })
