import { defineSlot, type JsonSchema } from '@svc/core'
import type { Json } from './store.ts'

/** A length of time as people write it: `250ms`, `30s`, `5m`, `2h`, `7d`. */
export type Duration = string

/** What a node does again after a failure, and how long it waits before. */
export interface RetryPolicy {
  /** Tries in all, the first among them. */
  readonly attempts: number
  /** Before the second try; default `1s`. */
  readonly delay?: Duration
  /** By what the wait grows each time; default 2. */
  readonly factor?: number
  /** The longest wait; default `1m`. */
  readonly max_delay?: Duration
  /** Codes of errors that are worth another try; absent: all but those of a broken definition or input. */
  readonly on?: readonly string[]
}

/**
 * One node of a graph, as it is written: these keys and those of its type. A text holds expressions as `${{ … }}`; one that is nothing else has the
 * expression's value, of whatever type.
 */
export interface NodeDefinition {
  readonly type: string
  readonly description?: string
  /** The node that follows; absent, or `end`: this way ends here. */
  readonly next?: string
  /** The node that follows, by the branch that it answers. Keys may be plain `true` and `false`. */
  readonly branches?: { readonly [branch: string]: string }
  readonly retry?: RetryPolicy
  /** How long one try may take. */
  readonly timeout?: Duration
  /** The node that follows a failure; its expressions have `error`. */
  readonly catch?: string
  /** What undoes it when the run fails after it was done; its expressions have `output`, what this node answered. */
  readonly compensate?: NodeDefinition | Graph
  /** Whether it may be run again when nobody knows whether it ran to its end; default: as its type says. */
  readonly repeatable?: boolean
  /** How often a way may pass here in one graph; default 100. */
  readonly max_visits?: number
  /** What is done inside: by a node that has one body. */
  readonly do?: Body
  /** The same, by name, of a node that has several. */
  readonly bodies?: { readonly [name: string]: Body }
  readonly [setting: string]: unknown
}

/** What a node does inside: a node, or a graph of them. */
export type Body = NodeDefinition | Graph

/** A graph of nodes; one of them runs at a time. */
export interface Graph {
  /** The first node; default: the one that is written first. */
  readonly start?: string
  readonly nodes: { readonly [name: string]: NodeDefinition }
  /** What it answers, expressions in it; absent: the output of its last node. */
  readonly result?: Json
  /** What all of its nodes may spend together. */
  readonly budget?: Budget
}

/** What may be spent; absent: without a limit. */
export interface Budget {
  readonly tool_calls?: number
  readonly tokens?: number
}

/** A workflow, as it is written in YAML, JSON or TypeScript. */
export interface WorkflowDefinition extends Graph {
  /** `[a-z][a-z0-9_-]*`, at most 64 characters. */
  readonly name: string
  readonly description?: string
  readonly version?: string
  /** JSON Schema of the input: an object. */
  readonly inputs?: JsonSchema
  /** Parameters by name: a JSON Schema each; one without `default` has to be given. */
  readonly parameters?: { readonly [name: string]: JsonSchema }
  /** JSON Schema of `result`. */
  readonly outputs?: JsonSchema
  /** Names of the secrets it uses, as `workflows.secrets` has them. */
  readonly secrets?: readonly string[]
  /** So many runs of it work at a time; others wait. */
  readonly concurrency?: number
  /** How long a run may work, waiting for people, events and time aside. */
  readonly timeout?: Duration
}

/** Workflows that a plugin brings, by name; all data. */
export const WorkflowDefinitions = defineSlot<WorkflowDefinition>('workflows', { api: 1, methods: {} })
