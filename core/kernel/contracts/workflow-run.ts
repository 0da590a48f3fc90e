import { type CallContext, defineService, defineTopic, type JsonSchema } from '@svc/core'
import type { PublicError } from './chat.ts'
import type { Fence, Json } from './store.ts'
import type { Question } from './workflow-node.ts'
import type { WorkflowDefinition } from './workflow.ts'

/** A problem in a definition. */
export interface WorkflowProblem {
  readonly message: string
  /** The place: `nodes.fetch.next`; empty for the whole. */
  readonly path: string
  /** The line and the column from 1, for text. */
  readonly line?: number
  readonly column?: number
  readonly hint?: string
}

/** A known workflow. */
export interface WorkflowInfo {
  readonly name: string
  readonly description?: string
  readonly version?: string
  /** The plugin or the file (below a root) that contains it. */
  readonly source: string
  /** The path of that file, for users of this machine. */
  readonly file?: string
  /** Number of nodes in all of its graphs. */
  readonly nodes: number
  /** Why it cannot run. Absent when it can. */
  readonly problems?: readonly WorkflowProblem[]
  /** Since when it is paused (Unix milliseconds). */
  readonly pausedAt?: number
}

/** A version of a workflow that svc has stored, because runs have used it. */
export interface WorkflowVersion {
  /** The digest of the definition, as in `Run.definition`. */
  readonly definition: string
  /** `version` of the definition. */
  readonly version?: string
  /** Whether new runs use it. */
  readonly isCurrent: boolean
  /** Number of running runs that the caller can see. They keep this version. */
  readonly open: number
  /** The day of its last start, in Unix milliseconds. Absent for a current version without runs. */
  readonly lastUsed?: number
  /** Node types that no plugin adds any more: a run fails when it reaches one. */
  readonly missing: readonly string[]
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

/** What a run or step has used. `cost` is absent if no model had a price. */
export interface RunUsage {
  readonly toolCalls: number
  readonly tokens: number
  readonly cost?: number
}

/** State of a run. Times are Unix milliseconds. */
export interface Run {
  readonly id: string
  readonly workflow: string
  /** The digest of the definition that it began with and keeps. */
  readonly definition: string
  readonly status: RunStatus
  /** 0 to 1. It never falls, and is 1 only when the run is completed. */
  readonly progress: number
  /** The running node; of several, the one that started last. Absent when none runs. */
  readonly currentNode?: string
  /** Names of completed nodes of the outermost graph, in the order of their first completion. */
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
  readonly spent: RunUsage
  /** The run that this one continues. */
  readonly retryOf?: string
  /** The run that this one replays, and the step of it from which nodes run again. */
  readonly replayOf?: string
  readonly replayFrom?: string
  /** The run that `continue_as_new` started at its end, the run that it continues, and the first run of this chain. */
  readonly nextRun?: string
  readonly previousRun?: string
  readonly firstRun?: string
  /** Since when this running run is paused. */
  readonly pausedAt?: number
  /** The latest retry or replay of this failed run. */
  readonly continuedBy?: string
  /** The node (`HostReport.nodeId`) whose files the run has used: it continues only there. Absent: on any node. */
  readonly affinity?: string
}

/** One step of a run: a node at one visit, in its graph. */
export interface RunStep {
  /** `fetch`, `fetch#2` on its second visit, `each/3/fetch` within the child `3` of `each`. */
  readonly step: string
  readonly node: string
  readonly type: string
  readonly status: StepStatus
  readonly attempts: number
  /** Its settings at the start; secrets are `***`. */
  readonly input: Json
  readonly output?: Json
  readonly branch?: string
  readonly error?: PublicError
  readonly startedAt: number
  readonly finishedAt?: number
  readonly spent?: RunUsage
}

/** An event of a run. */
export interface RunEvent {
  /** Increasing. A reader passes it to resume. Absent for events that are only streamed, not stored (`node_progress`). */
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
    | 'run_paused'
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
  /** A second request of the same principal with the same key within a day returns the first run. */
  readonly idempotencyKey?: string
  /** The run is stored for the queue; this process runs nothing of it. */
  readonly detached?: true
}

/** How a run continues another; otherwise as for a new run. */
export interface RetryRequest extends Pick<RunRequest, 'idempotencyKey' | 'detached'> {
  /** Refused if another run already continues this one. */
  readonly once?: true
}

/** How an ended run is repeated; otherwise as for a new run. */
export interface ReplayRequest extends Pick<RunRequest, 'idempotencyKey' | 'detached'> {
  /**
   * The node of the outermost graph from which nodes run again: `fetch`, `fetch#2` for its second visit. The recorded results of the
   * nodes before it are reused. Default: the first node.
   */
  readonly from?: string
  /** Other input or parameters. Default: those of the run. Nodes before `from` do not see them. */
  readonly input?: Json
  readonly parameters?: Json
  /** The definition that the run has used, or the current one. Default: `same`. */
  readonly definition?: 'same' | 'current'
}

/** Conditions that runs meet all. Times are Unix milliseconds. */
export interface RunFilter {
  readonly workflow?: string
  readonly status?: RunStatus
  /** The code of the error of a failed run. */
  readonly errorCode?: string
  readonly owner?: string
  /** Created at this time or later, and before that. Of dead letters: failed. */
  readonly since?: number
  readonly until?: number
  /** Only dead letters: runs that failed, were not cancelled, and are not continued by a retry or replay. */
  readonly dead?: boolean
  /** Only paused runs, or only others. */
  readonly paused?: boolean
}

export interface RunQuery extends RunFilter {
  /** 1 to 200. */
  readonly limit: number
  readonly cursor?: string
}

export type BulkAction = 'cancel' | 'retry' | 'drop'

/** A change of many runs. */
export interface BulkRequest {
  /**
   * `cancel`: running runs. `retry`: dead letters, and cancelled runs if `errorCode` is CANCELLED. `drop`: dead letters, which are
   * deleted.
   */
  readonly action: BulkAction
  /** At least one condition, but not `dead` or `paused`. */
  readonly filter: RunFilter
  /** Only counts the runs. */
  readonly dryRun?: boolean
}

/** What a bulk change did. */
export interface BulkOutcome {
  /** Number of selected runs. */
  readonly count: number
  /** The job that changes them, for more than 200. Its progress and result count them. */
  readonly job?: string
  /** Number of changed runs. */
  readonly changed?: number
  /** Runs whose cancellation takes longer. */
  readonly pending?: number
  /** The runs that could not be changed, at most 20. */
  readonly failed?: readonly { readonly run: string; readonly code: string; readonly message: string }[]
}

/** The text of a workflow. */
export interface WorkflowText {
  readonly info: WorkflowInfo
  /** Absent for code. The definition of a plugin is written as JSON. */
  readonly text?: string
  readonly format: 'yaml' | 'json' | 'code'
  /** A digest of the text: a change must name it. */
  readonly version: string
  /** Whether `save` can replace it. */
  readonly writable: boolean
}

/** A text to save. */
export interface WorkflowSave {
  /** The name of the workflow, which is that of its file. */
  readonly workflow: string
  /** YAML or JSON without problems. */
  readonly text: string
  /** The version that it replaces; `any` for any file, `new` for a workflow without one. */
  readonly replaces: string
}

/** A question of a run to a person. Times are Unix milliseconds. */
export interface RunQuestion {
  readonly run: string
  readonly workflow: string
  /** The id of the principal that started the run. */
  readonly owner: string
  readonly waiting: Waiting & { readonly ask: Question }
}

/** The events and queries of the definition of a run. */
export interface RunInterface {
  /** The events with the schemas of their data; undefined if the run accepts all. */
  readonly signals?: { readonly [name: string]: JsonSchema }
  /** The queries, with their descriptions. */
  readonly queries: { readonly [name: string]: { readonly description?: string } }
}

/** A workflow definition to check. */
export interface WorkflowSource {
  /** YAML or JSON. */
  readonly text: string
  /** Its name in problems. */
  readonly file?: string
}

/**
 * Manages workflows and runs. A principal sees only its own runs; the scope `admin` sees all. Errors: WORKFLOW_UNKNOWN,
 * WORKFLOW_INVALID (`details: {problems}`), RUN_UNKNOWN (also for runs of other principals), INVALID_VALUE (`details: {field,
 * reason, …}`: input or parameters that do not match their schema, a path outside of the roots, an answer to a step that does
 * not wait, a cancel or retry in the wrong state).
 */
export interface Workflows {
  list(ctx: CallContext): Promise<readonly WorkflowInfo[]>
  /** The current definition by name or path. */
  show(workflow: string, ctx: CallContext): Promise<{ readonly info: WorkflowInfo; readonly definition: WorkflowDefinition }>
  /** The versions of a workflow, the current one first, then the last used. It can be gone while runs of it are open. */
  versions(workflow: string, ctx: CallContext): Promise<readonly WorkflowVersion[]>
  /** All problems of a text, with lines. */
  validate(source: WorkflowSource, ctx: CallContext): Promise<readonly WorkflowProblem[]>
  /** The text by name or path. */
  source(workflow: string, ctx: CallContext): Promise<WorkflowText>
  /**
   * Writes a text into a workflow root: over the file of this name, else into `<svc home>/workflows`. Throws INVALID_VALUE (a name
   * that is not allowed), WORKFLOW_INVALID, FORBIDDEN (code, links), PRECONDITION_FAILED if the file has another version.
   */
  save(change: WorkflowSave, ctx: CallContext): Promise<WorkflowText>
  /** Open questions of runs, the newest first: the caller's own, with the scope `admin` all. */
  questions(
    query: { readonly limit: number; readonly cursor?: string },
    ctx: CallContext
  ): Promise<{ readonly questions: readonly RunQuestion[]; readonly next?: string }>
  /** Starts a run. When it resolves, the run is stored and continues even if the caller exits. */
  start(request: RunRequest, ctx: CallContext): Promise<Run>
  /**
   * Waits until a run has ended or `waitMs` have passed, and returns its state. Default of `waitMs`: `workflows.sync_wait_ms`.
   */
  settled(id: string, waitMs: number | undefined, ctx: CallContext): Promise<Run>
  get(id: string, ctx: CallContext): Promise<Run>
  /** Newest first. A page can have fewer runs than `limit`, or none; only an absent `next` marks the end. */
  runs(query: RunQuery, ctx: CallContext): Promise<{ readonly runs: readonly Run[]; readonly next?: string }>
  steps(id: string, ctx: CallContext): Promise<readonly RunStep[]>
  /** The steps, and the id of the last event that they contain: `events` after it continues them. */
  stepsAt(id: string, ctx: CallContext): Promise<{ readonly steps: readonly RunStep[]; readonly event: number }>
  /** The definition of a run. The current one of its workflow can be another. */
  definitionOf(id: string, ctx: CallContext): Promise<WorkflowDefinition>
  /** Streams the events after the event `after` (0: from the beginning), up to the end of the run. */
  events(id: string, after: number, ctx: CallContext): AsyncIterable<RunEvent>
  /**
   * Wakes steps that wait for an event of this name, in the run or the last one that continues it as new. The event is also kept for later steps while the run lasts. Throws INVALID_VALUE
   * for an event that `signals` of its definition does not have, and for data that does not match its schema.
   */
  signal(id: string, event: { readonly name: string; readonly data: Json }, ctx: CallContext): Promise<void>
  /** What the definition of a run lets callers send and read. */
  interface(id: string, ctx: CallContext): Promise<RunInterface>
  /**
   * Returns the value of a query of the definition of a run, which changes nothing. Throws INVALID_VALUE for an unknown query, and
   * for one that needs an output that is not there yet.
   */
  query(id: string, name: string, ctx: CallContext): Promise<Json>
  /** Answers the question of a step: `true` or `false` (also `approved` and `rejected`), one of the choices, or the input. */
  answer(id: string, answer: { readonly step: string; readonly value: Json }, ctx: CallContext): Promise<void>
  /** Cancels a run: aborts running nodes and compensates completed ones. Resolves when it has ended, or after 10 s. */
  cancel(id: string, ctx: CallContext): Promise<Run>
  /** Starts a run that takes over the completed work of a failed or cancelled run and continues with the rest. */
  retry(id: string, how: RetryRequest, ctx: CallContext): Promise<Run>
  /**
   * Starts a run that repeats an ended run from a node. If it fails, it compensates only nodes that it ran itself. Throws
   * INVALID_VALUE for a run that has not ended, for a node that the definition does not have or the run did not reach, if the work
   * of a node before it was undone, and if the definition does not lead over the recorded results to the node.
   */
  replay(id: string, request: ReplayRequest, ctx: CallContext): Promise<Run>
  /**
   * Pauses a run: running nodes end, and no further node starts. Waits, questions and events are kept. It takes no slot of the
   * workflow, and survives restarts. Resolves when it is paused or has ended, or after 10 s: then a node still runs. A paused run
   * can be cancelled, and ends after `workflows.max_age`.
   */
  pause(id: string, ctx: CallContext): Promise<Run>
  /** Lets a paused run go on. Throws INVALID_VALUE if it is not paused, or waits because its workflow is paused. */
  resume(id: string, ctx: CallContext): Promise<Run>
  /** New runs of the workflow are stored, and wait until it is resumed. Running ones go on. Throws FORBIDDEN without the scope `admin`. */
  pauseWorkflow(workflow: string, ctx: CallContext): Promise<void>
  /** Lets new runs start again, and those that wait. Returns the number of runs that waited. */
  resumeWorkflow(workflow: string, ctx: CallContext): Promise<number>
  /** Deletes a dead letter: its record, log and steps. Throws INVALID_VALUE for other runs. */
  drop(id: string, ctx: CallContext): Promise<void>
  /** Changes the runs that meet a filter: the caller's own, with the scope `admin` all. Throws UNAVAILABLE without the service `jobs`. */
  bulk(request: BulkRequest, ctx: CallContext): Promise<BulkOutcome>
  /**
   * Works on a run in this process while no other process does, until it has ended or the signal aborts. For processes that
   * take no other runs from the queue.
   */
  work(id: string, ctx: CallContext): Promise<void>
}

export const Workflows = defineService<Workflows>('workflows', {
  api: 1,
  methods: {
    list: 'call',
    show: 'call',
    versions: 'call',
    validate: 'call',
    source: 'call',
    save: 'call',
    questions: 'call',
    start: 'call',
    settled: 'call',
    get: 'call',
    runs: 'call',
    steps: 'call',
    stepsAt: 'call',
    definitionOf: 'call',
    events: 'stream',
    signal: 'call',
    interface: 'call',
    query: 'call',
    answer: 'call',
    cancel: 'call',
    retry: 'call',
    replay: 'call',
    pause: 'call',
    resume: 'call',
    pauseWorkflow: 'call',
    resumeWorkflow: 'call',
    drop: 'call',
    bulk: 'call',
    work: 'call',
  },
})

/** The end of a run; `duration` in seconds. */
export interface RunEnd {
  readonly run: string
  readonly workflow: string
  readonly status: RunStatus
  readonly error_code: string | null
  readonly duration: number
}
/** A run starts. */
export const RunStarted = defineTopic<{ readonly run: string; readonly workflow: string }>('WORKFLOW', 'run_started')
export interface RunQuestionData {
  readonly run: string
  readonly workflow: string
  readonly step: string
  readonly node: string
}
/** A step of a run asks a person. */
export const RunAsked = defineTopic<RunQuestionData>('WORKFLOW', 'run_asked')
/** A person has answered, and the run goes on. */
export const RunAnswered = defineTopic<RunQuestionData>('WORKFLOW', 'run_answered')
/** A run has ended, on this worker. */
export const RunEnded = defineTopic<RunEnd>('WORKFLOW', 'run_ended')

/** A run with work to do. `due`: since when, in Unix milliseconds. Absent: not before it is woken. */
export interface QueuedRun {
  readonly id: string
  readonly due?: number
  /** Limits the concurrent runs of a group. */
  readonly group?: { readonly name: string; readonly limit: number }
  /** The node (`HostReport.nodeId`) whose disk the run needs: only its workers get the run. Default: any. */
  readonly affinity?: string
}

/** When a returned run is due again. */
export interface ReturnedRun {
  /** Null: when it is woken. */
  readonly due: number | null
  /** Binds the run to a node from now on, as `QueuedRun.affinity`. Absent: it stays as it is. */
  readonly affinity?: string
}

/** The claim of this process on a run. Other processes do not work on it while the fence is valid. Writes carry the fence. */
export interface RunClaim {
  readonly id: string
  readonly fence: Fence
}

/**
 * The queue of runs with work to do: at-least-once delivery, one process per run at a time. The store holds the runs; the queue
 * only decides who works. So any queue with visibility time-outs can implement it, such as pg-boss or BullMQ over many machines:
 * `put` is a delayed job, a claim is a job that this process has together with a lease of the store, and `keep` extends both.
 *
 * It is infrastructure of the workflow engine, which is its only user: a plugin that takes a claim keeps the run from the engine.
 * Start runs with `Workflows`, and other work in the background with `Jobs`.
 */
export interface RunQueue {
  /** Schedules a run, or replaces its schedule. With `claim`, this process claims it at once if its group has capacity. */
  put(run: QueuedRun, options: { readonly claim: boolean }, ctx: CallContext): Promise<RunClaim | undefined>
  /** Yields claims of due runs. It claims the next one on demand. Ends when the signal aborts. */
  take(ctx: CallContext): AsyncIterable<RunClaim>
  /** The same for one run. Also ends when the run leaves the queue. */
  takeOne(id: string, ctx: CallContext): AsyncIterable<RunClaim>
  /** Extends a claim; call it every 10 s. Throws STORE_FENCED when another process has claimed the run. */
  keep(claim: RunClaim, ctx: CallContext): Promise<void>
  /** Returns a claim. The run is due again as `how` says, or never (`ended`). */
  leave(claim: RunClaim, how: ReturnedRun | 'ended', ctx: CallContext): Promise<void>
  /** Makes a run due now, unless a process works on it. */
  wake(id: string, ctx: CallContext): Promise<void>
  /**
   * Counts the due runs of all processes that wait for a worker: at most 1,000, so that the work is bounded. Runs of a group, which
   * can wait for a place in it, and runs that are bound to a node do not count: more workers would not start them.
   */
  countDue(ctx: CallContext): Promise<number>
}
export const RunQueue = defineService<RunQueue>('run_queue', {
  api: 1,
  methods: { put: 'call', take: 'stream', takeOne: 'stream', keep: 'call', leave: 'call', wake: 'call', countDue: 'call' },
})
