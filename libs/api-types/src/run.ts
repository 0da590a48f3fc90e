import type {
  PublicError,
  Json,
  Run,
  RunEvent,
  RunStep,
  Waiting,
  WorkflowInfo,
  WorkflowProblem,
  WorkflowVersion,
} from '@svc/core/contracts'

// Converts workflow runs from camelCase to the snake_case of the API.

/** A step that waits. `question` is set if it waits for a person. */
export interface WaitingRecord {
  readonly step: string
  readonly node: string
  readonly since: string
  readonly until: string | null
  readonly event: string | null
  readonly question: Waiting['ask'] | null
}

/** Returns the URL of the status of a run. */
export const statusUrl = (id: string) => `/api/v1/workflows/${id}/status`

const iso = (at: number) => new Date(at).toISOString()
const isoOrNull = (at: number | undefined) => (at === undefined ? null : iso(at))

/** The HTTP contract requires an object as `result`, so any other result goes into `value`. */
const resultObject = (result: Json | undefined): Json =>
  typeof result === 'object' && result !== null && !Array.isArray(result) ? result : { value: result ?? null }

const waitingRecord = ({ step, node, since, until, event, ask }: Waiting): WaitingRecord => ({
  step,
  node,
  since: iso(since),
  until: isoOrNull(until),
  event: event ?? null,
  question: ask ?? null,
})

const waitingFor = ({ waiting }: Run) => (waiting.length > 0 ? { waiting_for: waiting.map(waitingRecord) } : {})

/** The HTTP contract requires the text `cancelled` for a cancelled run. */
const errorText = ({ code, message }: PublicError) => (code === 'CANCELLED' ? 'cancelled' : message)

/** The reply to the request that starts a run. */
export function runReply(run: Run) {
  const { id, status, executionMs, result, error } = run
  const same = { success: status !== 'failed', workflow_id: id, status }
  if (status === 'completed') return { ...same, result: resultObject(result), execution_time_ms: Math.round(executionMs) }
  if (status === 'failed') return { ...same, ...failure(error), execution_time_ms: Math.round(executionMs) }
  const message = messageFor(run)
  return { ...same, message, status_url: statusUrl(id), ...waitingFor(run) }
}

function messageFor({ pausedAt, waiting }: Run): string {
  if (pausedAt !== undefined) return 'The workflow is paused.'
  return waiting.some(item => item.ask) ? 'The workflow waits for an answer.' : 'The workflow continues in the background.'
}

const failure = (error: PublicError | undefined) => ({
  error: error ? errorText(error) : null,
  failure_code: error?.code ?? null,
})

/** A version of a workflow. */
export const versionRecord = ({ definition, version, isCurrent, open, lastUsed, missing }: WorkflowVersion) => ({
  definition,
  version: version ?? null,
  is_current: isCurrent,
  open_runs: open,
  last_used_at: isoOrNull(lastUsed),
  missing_types: missing,
})

/** A run in a list. */
export const runRecord = (run: Run) => ({
  workflow_id: run.id,
  workflow: run.workflow,
  definition: run.definition,
  status: run.status,
  ...failure(run.error),
  created_at: iso(run.createdAt),
  updated_at: iso(run.updatedAt),
  finished_at: isoOrNull(run.finishedAt),
  execution_time_ms: Math.round(run.executionMs),
  retry_of: run.retryOf ?? null,
  replay_of: run.replayOf ?? null,
  replay_from: run.replayFrom ?? null,
  continued_by: run.continuedBy ?? null,
  next_run: run.nextRun ?? null,
  previous_run: run.previousRun ?? null,
  first_run: run.firstRun ?? null,
  paused_at: isoOrNull(run.pausedAt),
  affinity: run.affinity ?? null,
  cost: run.spent.cost ?? null,
  ...waitingFor(run),
})

/** The full status of a run. */
export const statusRecord = (run: Run) => ({
  ...runRecord(run),
  progress: run.progress,
  // the HTTP contract does not allow null here; for a waiting run, it is the node that waits
  current_node: run.currentNode ?? run.waiting[0]?.node ?? '',
  completed_nodes: run.completedNodes,
  result: run.status === 'completed' ? resultObject(run.result) : null,
  input: run.input,
  parameters: run.parameters,
  tool_calls: run.spent.toolCalls,
  tokens: run.spent.tokens,
})

/** A step of a run. */
export const stepRecord = ({ startedAt, finishedAt, spent, output, branch, error, ...same }: RunStep) => ({
  ...same,
  output: output ?? null,
  branch: branch ?? null,
  error: error ?? null,
  started_at: iso(startedAt),
  finished_at: isoOrNull(finishedAt),
  tool_calls: spent?.toolCalls ?? 0,
  tokens: spent?.tokens ?? 0,
  cost: spent?.cost ?? null,
})

/** The data of an event of a run. Further fields depend on the type. */
export interface RunEventRecord {
  readonly type: RunEvent['type']
  readonly timestamp: string
  readonly workflow_id: string
  readonly step?: string
  readonly node?: string
  readonly [field: string]: unknown
}

/** Converts an event of a run. The fields of `data` go beside the common fields. */
export const eventRecord = (id: string, { type, at, step, node, data }: RunEvent): RunEventRecord => ({
  type,
  timestamp: iso(at),
  workflow_id: id,
  ...(step === undefined ? {} : { step, ...(node === undefined ? {} : { node }) }),
  ...fieldsOf(data),
  ...(type === 'run_completed' ? { result: resultObject(data.result) } : {}),
})

function fieldsOf({ ask, ...data }: RunEvent['data']) {
  const entries = Object.entries({ ...data, question: ask })
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

/** A problem in a workflow definition. */
export const problemRecord = ({ message, path, line, hint }: WorkflowProblem) => ({
  message,
  path,
  line: line ?? null,
  hint: hint ?? null,
})

/** A workflow in a list. */
export const infoRecord = ({ name, description, version, source, nodes, pausedAt, problems = [] }: WorkflowInfo) => ({
  name,
  description: description ?? null,
  version: version ?? null,
  source,
  nodes,
  paused_at: isoOrNull(pausedAt),
  problems: problems.map(problemRecord),
})
