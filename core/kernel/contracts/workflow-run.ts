import { type CallContext, defineService, defineTopic } from '@svc/core'
import type { PublicError } from './chat.ts'
import type { Fence, Json } from './store.ts'
import type { Question } from './workflow-node.ts'
import type { WorkflowDefinition } from './workflow.ts'

/** One thing wrong with a definition. */
export interface WorkflowProblem {
  readonly message: string
  /** Where in it: `nodes.fetch.next`; empty for the whole. */
  readonly path: string
  /** From 1, where it is a text. */
  readonly line?: number
  readonly hint?: string
}

/** A workflow that there is. */
export interface WorkflowInfo {
  readonly name: string
  readonly description?: string
  readonly version?: string
  /** The plugin, or the file below a root, that it comes from. */
  readonly source: string
  /** The path of that file, for those at this machine. */
  readonly file?: string
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
  readonly error?: PublicError
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
  readonly error?: PublicError
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

/** How a run goes on from another; the same as of a run that begins. */
export type RetryRequest = Pick<RunRequest, 'idempotencyKey' | 'detached'>

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
  list(ctx: CallContext): Promise<readonly WorkflowInfo[]>
  /** The definition by its name or path, as it is now. */
  show(workflow: string, ctx: CallContext): Promise<{ readonly info: WorkflowInfo; readonly definition: WorkflowDefinition }>
  /** Everything that is wrong with a text, each with its line. */
  validate(source: WorkflowSource, ctx: CallContext): Promise<readonly WorkflowProblem[]>
  /** Begins a run; once answered it is stored, and goes on whatever becomes of the caller. */
  start(request: RunRequest, ctx: CallContext): Promise<Run>
  /** How a run stands once it has ended, or so many milliseconds from now; undefined: `workflows.sync_wait_ms`. */
  settled(id: string, waitMs: number | undefined, ctx: CallContext): Promise<Run>
  get(id: string, ctx: CallContext): Promise<Run>
  runs(query: RunQuery, ctx: CallContext): Promise<{ readonly runs: readonly Run[]; readonly next?: string }>
  steps(id: string, ctx: CallContext): Promise<readonly RunStep[]>
  /** What has happened after the event `after` (0: from the beginning), and what happens, up to the run's end. */
  events(id: string, after: number, ctx: CallContext): AsyncIterable<RunEvent>
  /** Wakes the steps that wait for an event of this name; kept for one that will, while the run lasts. */
  signal(id: string, event: { readonly name: string; readonly data: Json }, ctx: CallContext): Promise<void>
  /** Answers the question of a step: `true` or `false` (`approved` and `rejected` are taken as these), one of the choices, or what was asked for. */
  answer(id: string, answer: { readonly step: string; readonly value: Json }, ctx: CallContext): Promise<void>
  /** Ends a run: what runs is aborted, what is to be undone is. Answers once it has ended, or after 10 s. */
  cancel(id: string, ctx: CallContext): Promise<Run>
  /** A new run that takes over what one that failed or was cancelled has done, and begins with what was not done. */
  retry(id: string, how: RetryRequest, ctx: CallContext): Promise<Run>
  /** Works on a run in this process whenever nobody else does, until it has ended or the signal aborts: for a process that takes nothing else from the queue. */
  work(id: string, ctx: CallContext): Promise<void>
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
  put(run: QueuedRun, options: { readonly claim: boolean }, ctx: CallContext): Promise<RunClaim | undefined>
  /** Runs whose time has come, as this process may have them; the next one is taken when it is asked for. Ends with the signal. */
  take(ctx: CallContext): AsyncIterable<RunClaim>
  /** The same for one run alone; ends when the queue knows it no more, too. */
  takeOne(id: string, ctx: CallContext): AsyncIterable<RunClaim>
  /** Holds a claim for longer; due every 10 s. Throws STORE_FENCED when it is another's. */
  keep(claim: RunClaim, ctx: CallContext): Promise<void>
  /** Gives a claim back: to be worked on at `due`, when it is woken (`due` null), or never again (`ended`). */
  leave(claim: RunClaim, how: { readonly due: number | null } | 'ended', ctx: CallContext): Promise<void>
  /** There is news for a run: if nobody works on it, it is due now. */
  wake(id: string, ctx: CallContext): Promise<void>
}
export const RunQueue = defineService<RunQueue>('run_queue', {
  api: 1,
  methods: { put: 'call', take: 'stream', takeOne: 'stream', keep: 'call', leave: 'call', wake: 'call' },
})
