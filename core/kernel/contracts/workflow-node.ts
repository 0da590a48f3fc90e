import { defineSlot, type JsonSchema, type CallContext } from '@svc/core'
import type { PublicError } from './chat.ts'
import type { Json } from './store.ts'
import type { Body, Budget } from './workflow.ts'

/** What a person is asked. */
export interface Question {
  readonly kind: 'approval' | 'choice' | 'input'
  readonly message: string
  /** The answers there are to a `choice`. */
  readonly choices?: readonly string[]
  /** JSON Schema of the answer to an `input`. */
  readonly schema?: JsonSchema
}

/** What came of a child. */
export type ChildOutcome =
  | { readonly status: 'completed'; readonly output: Json }
  | { readonly status: 'failed'; readonly error: PublicError }
  | { readonly status: 'cancelled' }

/** One piece of work for a node: a new one, or the same once its children have ended or what it waited for has come. */
export interface NodeTask {
  readonly run: { readonly id: string; readonly workflow: string }
  /** The step: unique in its run, and the same on each try. */
  readonly step: string
  readonly node: string
  /** From 1. */
  readonly attempt: number
  /** The same on each try, and after a takeover: for whoever must not do a thing twice. */
  readonly idempotencyKey: string
  /** The node's own keys, its expressions evaluated. */
  readonly settings: { readonly [key: string]: Json | undefined }
  /** Names of the bodies that it has: `do`, or those of `bodies`. */
  readonly bodies: readonly string[]
  /** The branches that it has a way for. */
  readonly branches: readonly string[]
  /** It was called before, and nobody knows how far it came: its process ended. */
  readonly interrupted?: true
  /** What is left of the budgets round it, and is kept for this task until it ends. */
  readonly allowance: Budget
  /** What it gave with its last `fork` or `wait`, back. */
  readonly state?: Json
  /** What came of the children, by key, in the order of the fork. */
  readonly children?: { readonly [key: string]: ChildOutcome }
  /** What ended its waiting. */
  readonly woken?: { readonly by: 'time' } | { readonly by: 'event' | 'answer'; readonly data: Json }
}

/** A child that a node begins: a body of the node, one that it made itself, or a workflow. */
export interface ChildSpec {
  /** `[A-Za-z0-9_-]+`, unique in the step over all of its forks. */
  readonly key: string
  readonly body: string | Body | { readonly workflow: string; readonly input: Json; readonly parameters?: Json }
  /** What its expressions have besides: `item`, `index`, `last`, … */
  readonly vars?: { readonly [name: string]: Json }
}

/** What a node tells while it works. `output`, `wait` and `fork` are its last word; after the two last it is called again. */
export type NodeStep =
  | { readonly type: 'progress'; readonly message?: string; readonly fraction?: number }
  /** What it has spent since it last said so. */
  | {
      readonly type: 'spent'
      readonly tokens?: { readonly input: number; readonly output: number }
      readonly tool_calls?: number
    }
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
      /** `all`: goes on when all have ended; `any`: with the first that completes; `first`: with the first that ends. The others are cancelled then. */
      readonly join: 'all' | 'any' | 'first'
      /** With `all`: the others are cancelled when one fails. Default false. */
      readonly failFast?: boolean
      /** So many at a time; default all. */
      readonly width?: number
      readonly state?: Json
    }

/** Which branches a node answers where its settings are of a kind: `given` and `having` say which, the others what it answers then. */
export interface BranchRule {
  /** Settings that have to be given. Absent: none. */
  readonly given?: readonly string[]
  /** Values that settings have to have, by their names. Absent: none. */
  readonly having?: { readonly [setting: string]: string }
  /** Branches that each need a way on. */
  readonly branches?: readonly string[]
  /** The name of a setting whose list has more branches that need a way on. */
  readonly listed?: string
  /** Branches that may have a way on; where one has none the node fails instead. */
  readonly optional?: readonly string[]
}

/**
 * A type of node. All members but `run` are data. A text in `settings` whose schema says `"expression": "bool"` (or `list`, `any`) is an expression itself,
 * without `${{ }}`, evaluated before each call; with `"late": true` only once there are children's results.
 */
export interface WorkflowNode {
  readonly description: string
  /** JSON Schema of the keys of its own: an object schema; none may have the name of a key that every node has. */
  readonly settings: JsonSchema
  /** JSON Schema of its output. */
  readonly output?: JsonSchema
  /** The branches it answers: one of these words each time; `any`: which ones, and whether it does, depends on its settings. Absent: none. */
  readonly branches?: readonly string[] | 'any'
  /** With `any`: the branches it answers; the first rule that fits its settings counts. Absent: nothing is told of them before a run. */
  readonly answers?: readonly BranchRule[]
  /** Whether it has one body (`do`), several (`bodies`), or none. */
  readonly body?: 'do' | 'bodies'
  /** What the expressions of its bodies have besides, by name: `item`, `index`, … with JSON Schemas. */
  readonly vars?: { readonly [name: string]: JsonSchema }
  /**
   * True when it may be run again although nobody knows whether it ran to its end; `itself`: that depends on its settings. It is called then, with `interrupted`,
   * and throws NODE_INTERRUPTED where it may not.
   */
  readonly repeatable: boolean | 'itself'
  /** Names of tools, profiles, teams or workflows in its settings, by the key: so that unknown ones are told before a run. */
  readonly names?: { readonly [setting: string]: 'tool' | 'tools' | 'profile' | 'mode' | 'team' | 'workflow' }
  /** Settings that hold what a named thing is called with, by the setting in `names` that has its name, as `{ arguments: 'name' }`: so that what cannot fit is told before a run. */
  readonly calledWith?: { readonly [setting: string]: string }
  run(task: NodeTask, ctx: CallContext): AsyncIterable<NodeStep>
}

/** Types of nodes by the word that `type` has. */
export const WorkflowNodes = defineSlot<WorkflowNode>('workflow_nodes', { api: 1, methods: { run: 'stream' } })
