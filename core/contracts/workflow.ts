import { defineService, defineSlot, defineTopic, type JsonSchema, type Use } from '@svc/core'
import type { ErrorTold } from './chat.ts'
import type { Fence, Json } from './store.ts'

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

// -- nodes

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
  | { readonly status: 'failed'; readonly error: ErrorTold }
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
  run(task: NodeTask, use: Use): AsyncIterable<NodeStep>
}

/** Types of nodes by the word that `type` has. */
export const WorkflowNodes = defineSlot<WorkflowNode>('workflow_nodes', { api: 1, methods: { run: 'stream' } })

// -- runs

/** One thing wrong with a definition. */
export interface WorkflowProblem {
  readonly message: string
  /** Where in it: `nodes.fetch.next`; empty for the whole. */
  readonly path: string
  /** From 1, where it is a text. */
  readonly line?: number
  readonly mend?: string
}

/** A workflow that there is. */
export interface WorkflowInfo {
  readonly name: string
  readonly description?: string
  readonly version?: string
  /** The plugin, or the file below a root, that it comes from. */
  readonly source: string
  /** Nodes in all graphs of it. */
  readonly nodes: number
  /** Why it cannot run; absent where it can. */
  readonly problems?: readonly WorkflowProblem[]
}

export type RunStatus = 'running' | 'completed' | 'failed'
export type StepStatus = 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled'

/** What a run waits for. */
export interface Waiting {
  readonly step: string
  readonly node: string
  /** Unix milliseconds. */
  readonly since: number
  readonly until?: number
  readonly event?: string
  readonly ask?: Question
}

/** How a run stands. Times are Unix milliseconds. */
export interface Run {
  readonly id: string
  readonly workflow: string
  readonly status: RunStatus
  /** 0 to 1, never falls, 1 only when it is completed. */
  readonly progress: number
  /** The node that works now, of several the one that began last; absent where none does. */
  readonly currentNode?: string
  /** Names of the nodes of the outermost graph that are done, in the order they were first done. */
  readonly completedNodes: readonly string[]
  readonly waiting: readonly Waiting[]
  readonly input: Json
  readonly parameters: Json
  readonly result?: Json
  readonly error?: ErrorTold
  readonly createdAt: number
  readonly updatedAt: number
  readonly finishedAt?: number
  /** Milliseconds from its creation to its end, or to now. */
  readonly executionMs: number
  readonly spent: { readonly toolCalls: number; readonly tokens: number }
  /** The run that this one goes on from. */
  readonly retryOf?: string
}

/** One step of a run: a node at one visit, in its graph. */
export interface RunStep {
  /** `fetch`, `fetch#2` on its second visit, `each/3/fetch` within the child `3` of `each`. */
  readonly step: string
  readonly node: string
  readonly type: string
  readonly status: StepStatus
  readonly attempts: number
  /** The settings it began with; secrets are `***`. */
  readonly input: Json
  readonly output?: Json
  readonly branch?: string
  readonly error?: ErrorTold
  readonly startedAt: number
  readonly finishedAt?: number
  readonly spent?: { readonly toolCalls: number; readonly tokens: number }
}

/** Something that has happened in a run. */
export interface RunEvent {
  /** Rises, and is what a reader that comes back names; absent in what is told only to those who read along now (`node_progress`). */
  readonly id?: number
  /** Unix milliseconds. */
  readonly at: number
  readonly type:
    | 'run_started'
    | 'node_started'
    | 'node_progress'
    | 'node_waiting'
    | 'node_woken'
    | 'node_forked'
    | 'node_retrying'
    | 'node_completed'
    | 'node_failed'
    | 'node_cancelled'
    | 'run_resumed'
    | 'run_compensating'
    | 'run_completed'
    | 'run_failed'
  readonly step?: string
  readonly node?: string
  readonly data: { readonly [key: string]: Json | undefined }
}

export interface RunRequest {
  /** Its name, the path of a file below a workflow root, or the definition itself. */
  readonly workflow: string | WorkflowDefinition
  readonly input?: Json
  readonly parameters?: Json
  /** A second request of the same principal with the same key, within a day, answers the run of the first. */
  readonly idempotencyKey?: string
  /** It is stored and left to whoever takes it from the queue: nothing of it runs in this process. */
  readonly detached?: true
}

export interface RunQuery {
  readonly workflow?: string
  readonly status?: RunStatus
  /** 1 to 200. */
  readonly limit: number
  readonly cursor?: string
}

/** Where a workflow may be read from before it runs. */
export interface WorkflowSource {
  /** YAML or JSON. */
  readonly text: string
  /** What it is called in problems. */
  readonly file?: string
}

/**
 * Workflows and their runs. A principal sees its own runs only, one with the scope `admin` all of them.
 * Errors: WORKFLOW_UNKNOWN, WORKFLOW_INVALID (`details: {problems}`), RUN_UNKNOWN (another's run too), INVALID_VALUE (`details: {field, reason, …}`: input or
 * parameters that break their schema, a path outside the roots, an answer to a step that does not wait, a cancel or retry that is too late or too early).
 */
export interface Workflows {
  list(use: Use): Promise<readonly WorkflowInfo[]>
  /** The definition by its name or path, as it is now. */
  show(workflow: string, use: Use): Promise<{ readonly info: WorkflowInfo; readonly definition: WorkflowDefinition }>
  /** Everything that is wrong with a text, each with its line. */
  validate(source: WorkflowSource, use: Use): Promise<readonly WorkflowProblem[]>
  /** Begins a run; once answered it is stored, and goes on whatever becomes of the caller. */
  start(request: RunRequest, use: Use): Promise<Run>
  /** How a run stands once it has ended, or so many milliseconds from now; undefined: `workflows.sync_wait_ms`. */
  settled(id: string, waitMs: number | undefined, use: Use): Promise<Run>
  get(id: string, use: Use): Promise<Run>
  runs(query: RunQuery, use: Use): Promise<{ readonly runs: readonly Run[]; readonly next?: string }>
  steps(id: string, use: Use): Promise<readonly RunStep[]>
  /** What has happened after the event `after` (0: from the beginning), and what happens, up to the run's end. */
  events(id: string, after: number, use: Use): AsyncIterable<RunEvent>
  /** Wakes the steps that wait for an event of this name; kept for one that will, while the run lasts. */
  signal(id: string, event: { readonly name: string; readonly data: Json }, use: Use): Promise<void>
  /** Answers the question of a step: `true` or `false`, one of the choices, or what was asked for. */
  answer(id: string, answer: { readonly step: string; readonly value: Json }, use: Use): Promise<void>
  /** Ends a run: what runs is aborted, what is to be undone is. Answers once it has ended, or after 10 s. */
  cancel(id: string, use: Use): Promise<Run>
  /** A new run that takes over what a failed one has done, and begins with what failed. */
  retry(id: string, use: Use): Promise<Run>
  /** Works on a run in this process whenever nobody else does, until it has ended or the signal aborts: for a process that takes nothing else from the queue. */
  work(id: string, use: Use): Promise<void>
}

export const Workflows = defineService<Workflows>('workflows', {
  api: 1,
  methods: {
    list: 'call',
    show: 'call',
    validate: 'call',
    start: 'call',
    settled: 'call',
    get: 'call',
    runs: 'call',
    steps: 'call',
    events: 'stream',
    signal: 'call',
    answer: 'call',
    cancel: 'call',
    retry: 'call',
    work: 'call',
  },
})

// -- work to be done

/** A run that has work to do, and since when (Unix milliseconds; absent: not until it is woken). */
export interface QueuedRun {
  readonly id: string
  readonly due?: number
  /** At most so many of a group work at a time. */
  readonly group?: { readonly name: string; readonly limit: number }
}

/** A run that this process works on: nobody else does while the fence holds, and what it writes carries it. */
export interface RunClaim {
  readonly id: string
  readonly fence: Fence
}

/**
 * Which runs have work to do, and who does it: at least once, to one at a time. The store has what a run is; a queue only says whose turn it is, so any queue
 * with visibility time-outs can be one (over many machines BullMQ: `put` is a delayed job, a claim its lock together with a lease of the store, `keep` extends both).
 */
export interface RunQueue {
  /** Has a run worked on at its time, from now on; replaces what was said of it. With `claim`, this process takes it at once where its group has room. */
  put(run: QueuedRun, options: { readonly claim: boolean }, use: Use): Promise<RunClaim | undefined>
  /** Runs whose time has come, as this process may have them; the next one is taken when it is asked for. Ends with the signal. */
  take(use: Use): AsyncIterable<RunClaim>
  /** The same for one run alone; ends when the queue knows it no more, too. */
  takeOne(id: string, use: Use): AsyncIterable<RunClaim>
  /** Holds a claim for longer; due every 10 s. Throws STORE_FENCED when it is another's. */
  keep(claim: RunClaim, use: Use): Promise<void>
  /** Gives a claim back: to be worked on at `due`, when it is woken (`due` null), or never again (`ended`). */
  leave(claim: RunClaim, how: { readonly due: number | null } | 'ended', use: Use): Promise<void>
  /** There is news for a run: if nobody works on it, it is due now. */
  wake(id: string, use: Use): Promise<void>
}
export const RunQueue = defineService<RunQueue>('run_queue', {
  api: 1,
  methods: { put: 'call', take: 'stream', takeOne: 'stream', keep: 'call', leave: 'call', wake: 'call' },
})

/** How a run has ended; `duration` in seconds. */
export interface RunEnd {
  readonly run: string
  readonly workflow: string
  readonly status: RunStatus
  readonly error_code: string | null
  readonly duration: number
}
/** A run has ended, on this worker. */
export const RunEnded = defineTopic<RunEnd>('WORKFLOW', 'run_ended')
