import { defineSlot, type JsonSchema, type CallContext } from '@svc/core'
import type { PublicError } from './chat.ts'
import type { Json } from './store.ts'
import type { Body, Budget } from './workflow.ts'

/** A question to a person. */
export interface Question {
  readonly kind: 'approval' | 'choice' | 'input'
  readonly message: string
  /** The possible answers to a `choice`. */
  readonly choices?: readonly string[]
  /** JSON Schema of the answer to an `input`. */
  readonly schema?: JsonSchema
}

/** What nodes have used. `cost` is absent if no model had a price. */
export interface NodeUsage {
  readonly tokens: number
  readonly tool_calls: number
  readonly cost?: number
}

/** Outcome of a child. `usage`: of all of its nodes and attempts; absent if they reported none. */
export type ChildOutcome = { readonly usage?: NodeUsage } & ChildEnd
type ChildEnd =
  | { readonly status: 'completed'; readonly output: Json }
  | { readonly status: 'failed'; readonly error: PublicError }
  | { readonly status: 'cancelled' }

/** One task of a node: a new one, or the same one again after its children have ended or its wait is over. */
export interface NodeTask {
  readonly run: { readonly id: string; readonly workflow: string }
  /** The step. It is unique in its run and the same on each attempt. */
  readonly step: string
  readonly node: string
  /** From 1. */
  readonly attempt: number
  /** The same on each attempt, and after a takeover: lets the node avoid doing a thing twice. */
  readonly idempotencyKey: string
  /** The settings of the node, with evaluated expressions. */
  readonly settings: { readonly [key: string]: Json | undefined }
  /** Names of its bodies: `do`, or those of `bodies`. */
  readonly bodies: readonly string[]
  /** The branches that have an edge. */
  readonly branches: readonly string[]
  /** It was called before and its process died, so its progress is unknown. */
  readonly interrupted?: true
  /** The rest of the surrounding budgets, reserved for this task until it ends. */
  readonly allowance: Budget
  /** The state of its last `fork` or `wait`. */
  readonly state?: Json
  /** Outcomes of the children by key, in the order of the fork. */
  readonly children?: { readonly [key: string]: ChildOutcome }
  /** What ended the wait. */
  readonly woken?: { readonly by: 'time' } | { readonly by: 'event' | 'answer'; readonly data: Json }
}

/** A child that a node starts: a body of the node, a generated body, or a workflow. */
export interface ChildSpec {
  /** `[A-Za-z0-9_-]+`, unique in the step over all of its forks. */
  readonly key: string
  readonly body: string | Body | { readonly workflow: string; readonly input: Json; readonly parameters?: Json }
  /** Additional variables of its expressions: `item`, `index`, `last`, … */
  readonly vars?: { readonly [name: string]: Json }
}

/** Events of a running node. `output`, `wait` and `fork` are final. After `wait` and `fork`, the node is called again. */
export type NodeStep =
  | { readonly type: 'progress'; readonly message?: string; readonly fraction?: number }
  /** Usage since the last such event. */
  | {
      readonly type: 'spent'
      readonly tokens?: { readonly input: number; readonly output: number }
      readonly tool_calls?: number
      readonly cost?: number
    }
  /**
   * From now on, the node uses files or processes of this machine that other machines do not have. In a cluster, the run then
   * continues only on this node. Throws WORKPLACE_LOST if the run has used those of another node, so yield it before their use.
   */
  | { readonly type: 'workplace' }
  | { readonly type: 'output'; readonly output: Json; readonly branch?: string }
  | {
      readonly type: 'wait'
      /** Unix milliseconds. */
      readonly until?: number
      readonly event?: string
      readonly ask?: Question
      readonly state?: Json
    }
  | {
      readonly type: 'fork'
      readonly children: readonly ChildSpec[]
      /**
       * `all`: continue when all have ended. `any`: with the first that completes. `first`: with the first that ends. The
       * others are then cancelled.
       */
      readonly join: 'all' | 'any' | 'first'
      /** With `all`: a failing child cancels the others. Default false. */
      readonly failFast?: boolean
      /** Maximum number of concurrent children. Default: all. */
      readonly width?: number
      readonly state?: Json
    }

/** The branches of a node for certain settings: `given` and `having` are the condition, the rest the result. */
export interface BranchRule {
  /** Settings that must be present. Absent: none. */
  readonly given?: readonly string[]
  /** Required values of settings. Absent: none. */
  readonly having?: { readonly [setting: string]: string }
  /** Branches that must have an edge. */
  readonly branches?: readonly string[]
  /** The name of a setting that lists further branches that must have an edge. */
  readonly listed?: string
  /** Branches that can have an edge. Without one, the node fails instead. */
  readonly optional?: readonly string[]
}

/**
 * A type of node. All members but `run` are data. A text in `settings` whose schema has `"expression": "bool"` (or `list`,
 * `any`) is an expression without `${{ }}`, evaluated before each call. With `"late": true` it is evaluated only when the
 * results of children exist.
 */
export interface WorkflowNode {
  readonly description: string
  /** JSON Schema of its own keys, an object. They must differ from the keys that every node has. */
  readonly settings: JsonSchema
  /** JSON Schema of its output. */
  readonly output?: JsonSchema
  /** Its branches: it returns one of them each time. `any`: its settings decide. Absent: none. */
  readonly branches?: readonly string[] | 'any'
  /** With `any`: its branches by settings; the first matching rule counts. Absent: branches are not checked before a run. */
  readonly answers?: readonly BranchRule[]
  /** Whether it has one body (`do`), several (`bodies`), or none. */
  readonly body?: 'do' | 'bodies'
  /** Additional variables of the expressions in its bodies, with JSON Schemas: `item`, `index`, … */
  readonly vars?: { readonly [name: string]: JsonSchema }
  /**
   * True when it can run again after an unknown outcome. `itself`: the node decides from its settings. It is then called with
   * `interrupted`, and throws NODE_INTERRUPTED to refuse.
   */
  readonly repeatable: boolean | 'itself'
  /** Settings that name tools, profiles, teams, workflows or events (`signal`), so that unknown names are reported before a run. */
  readonly names?: { readonly [setting: string]: 'tool' | 'tools' | 'profile' | 'mode' | 'team' | 'workflow' | 'signal' }
  /**
   * Settings with the arguments of a named item, by the setting in `names` that has its name: `{ arguments: 'name' }`. So
   * arguments that cannot match are reported before a run.
   */
  readonly calledWith?: { readonly [setting: string]: string }
  run(task: NodeTask, ctx: CallContext): AsyncIterable<NodeStep>
}

/** Node types by the value of `type`. */
export const WorkflowNodes = defineSlot<WorkflowNode>('workflow_nodes', { api: 1, methods: { run: 'stream' } })
