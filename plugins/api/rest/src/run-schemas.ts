import { type CallContext, type JsonSchema, svcError } from '@svc/core'
import type { Run, RunEvent, Workflows } from '@svc/core/contracts'
import { NULLABLE_FILE } from './run-files.ts'
import { headerInvalid } from './errors.ts'
import { INTEGER, list, nullable, NUMBER, OBJECT, object, STRING, TIME, words } from '@svc/api-types'

const ANY: JsonSchema = {}
const STATUS = words('running', 'completed', 'failed')
const nullableTime: JsonSchema = { type: ['string', 'null'], format: 'date-time' }
const nullableObject = nullable('object')

const question: JsonSchema = {
  ...(object({ kind: words('approval', 'choice', 'input'), message: STRING, choices: list(STRING), schema: OBJECT }, [
    'kind',
    'message',
  ]) as object),
  title: 'WorkflowQuestion',
}

const waiting = {
  ...(object({
    step: STRING,
    node: STRING,
    since: TIME,
    until: nullableTime,
    event: nullable('string'),
    question: { oneOf: [question, { type: 'null' }] },
  }) as object),
  title: 'WorkflowWaiting',
}

const error = { ...(object({ code: STRING, message: STRING, details: OBJECT }) as object), title: 'WorkflowError' }
const nullableError: JsonSchema = { oneOf: [error, { type: 'null' }] }

const result = { ...(OBJECT as object), description: 'The result of the workflow. A result that is not an object is in `value`.' }

const nullableResult = { ...result, type: ['object', 'null'] }

const replyFields = {
  success: { type: 'boolean' },
  workflow_id: STRING,
  status: STATUS,
  result,
  result_file: NULLABLE_FILE,
  execution_time_ms: INTEGER,
  message: STRING,
  status_url: STRING,
  error: STRING,
  failure_code: STRING,
  waiting_for: list(waiting),
}
/** What models cost. */
const COST: JsonSchema = {
  ...(nullable('number') as object),
  description: 'By models.prices, in their currency; null if no model had a price.',
}
const SPENT = object({ tool_calls: INTEGER, tokens: INTEGER, cost: NUMBER }, ['tool_calls', 'tokens'])

/** The reply to a request that starts a run. */
export const RUN_REPLY: JsonSchema = {
  ...(object(replyFields, ['success', 'workflow_id', 'status']) as object),
  title: 'WorkflowRun',
}

const summaryFields = {
  workflow_id: STRING,
  workflow: STRING,
  definition: { ...(STRING as object), description: 'The digest of the definition that the run keeps.' },
  status: STATUS,
  error: nullable('string'),
  failure_code: nullable('string'),
  created_at: TIME,
  updated_at: TIME,
  finished_at: nullableTime,
  paused_at: { ...(nullableTime as object), description: 'Since when a running run is paused.' },
  affinity: {
    ...(nullable('string') as object),
    description: 'The node of the cluster whose files the run has used: it continues only there.',
  },
  execution_time_ms: INTEGER,
  cost: {
    ...(COST as object),
    description: 'By models.prices, in their currency; null if no model had a price, and in lists while the run is running.',
  },
  retry_of: nullable('string'),
  replay_of: { ...(nullable('string') as object), description: 'The run that this one repeats.' },
  replay_from: { ...(nullable('string') as object), description: 'The step of that run from which nodes ran again.' },
  continued_by: { ...(nullable('string') as object), description: 'The latest retry or replay of a failed run.' },
  next_run: { ...(nullable('string') as object), description: 'The run that continue_as_new started at its end.' },
  previous_run: { ...(nullable('string') as object), description: 'The run that this one continues as new.' },
  first_run: { ...(nullable('string') as object), description: 'The first run of the chain.' },
  waiting_for: list(waiting),
}
const without = (optional: string, fields: object) => Object.keys(fields).filter(name => name !== optional)

/** A run in a list. */
export const RUN_SUMMARY = object(summaryFields, without('waiting_for', summaryFields))

const statusFields = {
  ...summaryFields,
  progress: { ...(NUMBER as object), minimum: 0, maximum: 1 },
  current_node: { ...(STRING as object), description: 'Empty if no node is running.' },
  completed_nodes: list(STRING),
  result: nullableObject,
  result_file: NULLABLE_FILE,
  input: ANY,
  parameters: ANY,
  tool_calls: INTEGER,
  tokens: INTEGER,
}
/** The status of a run. */
export const RUN_STATUS: JsonSchema = {
  ...(object(statusFields, without('waiting_for', statusFields)) as object),
  title: 'WorkflowStatus',
}

/** One step of a run. */
export const RUN_STEP = object({
  step: STRING,
  node: STRING,
  type: STRING,
  status: words('running', 'waiting', 'completed', 'failed', 'cancelled'),
  attempts: INTEGER,
  input: ANY,
  output: ANY,
  output_file: NULLABLE_FILE,
  branch: nullable('string'),
  error: nullableError,
  started_at: TIME,
  finished_at: nullableTime,
  tool_calls: INTEGER,
  tokens: INTEGER,
  cost: COST,
})

const problem = object({ message: STRING, path: STRING, line: nullable('integer'), hint: nullable('string') })

/** A workflow in a list. */
export const WORKFLOW_INFO: JsonSchema = {
  ...(object({
    name: STRING,
    description: nullable('string'),
    version: nullable('string'),
    source: STRING,
    nodes: INTEGER,
    paused_at: { ...(nullableTime as object), description: 'Since when new runs wait.' },
    problems: list(problem),
  }) as object),
  title: 'Workflow',
}

/** A version of a workflow. */
export const WORKFLOW_VERSION: JsonSchema = {
  ...(object({
    definition: { ...(STRING as object), description: 'The digest of the definition, as in its runs.' },
    version: nullable('string'),
    is_current: { type: 'boolean', description: 'Whether new runs use it.' },
    open_runs: {
      ...(INTEGER as object),
      description: 'Running runs of this version; with the scope admin those of all principals.',
    },
    last_used_at: nullableTime,
    missing_types: { ...(list(STRING) as object), description: 'Node types that no plugin adds any more.' },
  }) as object),
  title: 'WorkflowVersion',
}

type Fields = Parameters<typeof object>[0]

/** The additional fields of each event. All are optional. */
const FIELDS: { readonly [K in RunEvent['type']]: Fields } = {
  run_started: {},
  run_paused: {},
  run_resumed: {},
  run_compensating: { error },
  run_completed: { result: nullableResult, result_file: NULLABLE_FILE, next_run: STRING },
  run_failed: { error },
  node_started: { node_type: STRING, attempt: INTEGER, input: ANY },
  node_progress: { message: STRING, fraction: NUMBER },
  node_waiting: { until: TIME, event: STRING, question },
  node_woken: { by: words('time', 'event', 'answer') },
  node_forked: { children: list(STRING) },
  node_retrying: { error, due: TIME },
  node_completed: {
    output: ANY,
    output_file: NULLABLE_FILE,
    branch: STRING,
    spent: SPENT,
  },
  node_failed: { error, spent: SPENT },
  node_cancelled: {},
}

const nameOf = (type: string) => `${type.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())}Event`

function eventSchema(type: RunEvent['type']): JsonSchema {
  const same = { type: { const: type }, timestamp: TIME, workflow_id: STRING, step: STRING, node: STRING }
  const required = ['type', 'timestamp', 'workflow_id', ...(type.startsWith('node_') ? ['step', 'node'] : [])]
  return { title: nameOf(type), ...(object({ ...same, ...FIELDS[type] }, required) as object) }
}

/** The data of an event of a run. */
export const RUN_EVENT: JsonSchema = {
  title: 'WorkflowEvent',
  oneOf: (Object.keys(FIELDS) as RunEvent['type'][]).map(eventSchema),
}

/** A time in a request. */
export const TIME_GIVEN: JsonSchema = {
  type: 'string',
  format: 'date-time',
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$',
  patternHint: 'must be a time such as 2026-01-31T12:00:00Z',
}

/** The milliseconds of a time in a request. Throws INVALID_VALUE for a day that does not exist. */
export function timeOf(field: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const time = Date.parse(value)
  if (!Number.isNaN(time)) return time
  const reason = 'must be a time such as 2026-01-31T12:00:00Z'
  throw svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason } })
}

type Headers = Readonly<Record<string, string>>

const SECOND = 1_000
/** Maximum time that a request waits for a run. */
const MOST_WAIT_MS = 60_000

/**
 * Returns the milliseconds that a request waits for a run: N seconds for `Prefer: wait=N` (RFC 7240), 0 for `respond-async`, otherwise undefined.
 * Unknown preferences are ignored.
 */
function waitOf({ prefer = '' }: Headers): number | undefined {
  const [, seconds] = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(prefer) ?? []
  if (seconds !== undefined) return Math.min(Number(seconds) * SECOND, MOST_WAIT_MS)
  return /(?:^|,)\s*respond-async\s*(?:$|[,;])/i.test(prefer) ? 0 : undefined
}

/** The state of a new run at its end, or after the time that the client waits. A paused one does not end by itself. */
export const settledRun = ({ settled }: Pick<Workflows, 'settled'>, { id, pausedAt }: Run, headers: Headers, ctx: CallContext) =>
  settled(id, pausedAt === undefined ? waitOf(headers) : 0, ctx)

/** Returns the idempotency key of a request. Throws INVALID_VALUE. */
export function keyOf({ 'idempotency-key': key }: Headers): string | undefined {
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw headerInvalid('Idempotency-Key', key, 'must be 1 to 255 visible characters')
}

/** Returns the id of the last event that the client has: `Last-Event-ID`, otherwise `?after`, otherwise 0. Throws INVALID_VALUE. */
export function afterOf({ 'last-event-id': last = '' }: Headers, after = '0'): number {
  const value = last === '' ? after : last
  if (/^\d{1,15}$/.test(value)) return Number(value)
  throw headerInvalid('Last-Event-ID', value, 'must be the id of an event')
}
