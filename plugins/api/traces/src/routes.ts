import { type CallContext, type JsonSchema, type SpanEvent, svcError } from '@svc/core'
import type { Route } from '@svc/core/contracts'
import type { RootRecord, StoredSpan } from './space.ts'
import { statusOf, type TraceQuery, type TraceReader } from './reader.ts'

const PATH = '/api/v1/traces'
const [PAGE, MOST] = [50, 200]
const [SPANS, MOST_SPANS] = [1_000, 10_000]

const text = (description: string, maxLength = 200): JsonSchema => ({ type: 'string', minLength: 1, maxLength, description })
const time = (description: string): JsonSchema => ({
  type: 'string',
  format: 'date-time',
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$',
  patternHint: 'must be a time such as 2026-01-31T12:00:00Z',
  description,
})
const number = (description: string, maximum?: number): JsonSchema => ({
  type: 'integer',
  minimum: 1,
  ...(maximum === undefined ? {} : { maximum }),
  description,
})
const object = (properties: Record<string, JsonSchema>, optional: readonly string[] = []): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
})
const nullable = (type: string): JsonSchema => ({ type: [type, 'null'] })
const STRING: JsonSchema = { type: 'string' }
const NUMBER: JsonSchema = { type: 'number' }
const INTEGER: JsonSchema = { type: 'integer' }
const TIME: JsonSchema = { type: 'string', format: 'date-time' }
const STATUS: JsonSchema = { type: 'string', enum: ['ok', 'error', 'running'] }
const HEX = { type: 'string', pattern: '^[0-9a-f]+$' } as const
const NANOS: JsonSchema = { type: 'string', pattern: '^\\d+$', description: 'Unix nanoseconds.' }

const listQuery: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    from: time('Lists only traces that started at this time or later.'),
    to: time('Lists only traces that started before this time.'),
    principal: text('Lists only traces of this principal. Requires the scope admin, except for your own.'),
    conversation: text('Lists only traces of this conversation.'),
    run: text('Lists only traces of this workflow run.'),
    request: text('Lists only traces of this request id.'),
    status: STATUS,
    reads: {
      type: 'boolean',
      description: 'Default true; false leaves out GET and HEAD requests without the status error, such as those of the console.',
    },
    min_ms: number('Lists only traces that took at least so many milliseconds.'),
    q: text('Lists only traces whose name contains this text; case does not matter.'),
    limit: number(`Maximum entries of the page; default ${PAGE}.`, MOST),
    cursor: text('The next_cursor of the previous page.', 1_000),
  },
}
const readQuery: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    limit: number(`Maximum spans of the page; default ${SPANS}.`, MOST_SPANS),
    cursor: text('The next_cursor of the previous page.', 1_000),
  },
}

const root = object(
  {
    trace_id: HEX,
    span_id: HEX,
    parent_span_id: HEX,
    name: STRING,
    kind: STRING,
    started_at: TIME,
    duration_ms: nullable('number'),
    status: STATUS,
    error_code: nullable('string'),
    principal: STRING,
    request_id: STRING,
    conversation_id: nullable('string'),
    run_id: nullable('string'),
    plugin: STRING,
    models: { type: 'array', items: STRING },
    usage: object({ input_tokens: INTEGER, output_tokens: INTEGER }),
    cost: { type: ['number', 'null'], description: 'By models.prices, in their currency; null if no model had a price.' },
    spans: INTEGER,
    errors: INTEGER,
  },
  ['parent_span_id']
)
const attributes: JsonSchema = { type: 'object', description: 'Attributes, named by the semantic conventions of OpenTelemetry.' }
const span = object(
  {
    trace_id: HEX,
    span_id: HEX,
    parent_span_id: HEX,
    name: STRING,
    kind: STRING,
    start_time_unix_nano: NANOS,
    end_time_unix_nano: NANOS,
    duration_ms: NUMBER,
    status: object({ code: { type: 'string', enum: ['unset', 'error'] }, message: STRING }, ['message']),
    attributes,
    events: { type: 'array', items: object({ name: STRING, time_unix_nano: NANOS, attributes }) },
    plugin: STRING,
    cost: { type: 'number', description: 'Of a call of a model with a price, and of a turn: the sum of its calls.' },
  },
  ['parent_span_id', 'end_time_unix_nano', 'duration_ms', 'cost']
)

const ok = (description: string, schema: JsonSchema) => ({ '200': { description, schema } })

interface RouteOptions {
  readonly reader: TraceReader
  /** Writes what the workers still hold. */
  readonly settle: (ctx: CallContext) => Promise<void>
}

/** The routes that read traces. They make no traces themselves. */
export function createTraceRoutes({ reader, settle }: RouteOptions): Record<string, Route> {
  return {
    trace_list: {
      method: 'GET',
      path: PATH,
      summary: 'List traces, newest first',
      description:
        'One entry for each request, workflow run and job. A page can have fewer entries than its limit although others follow: next_cursor is null only at the end.',
      scope: 'read',
      untraced: true,
      query: listQuery,
      responses: ok(
        'A page of traces, without their spans.',
        object({ traces: { type: 'array', items: root }, next_cursor: nullable('string') })
      ),
      async handle({ query }, ctx) {
        await settle(ctx)
        const { roots, next } = await reader.list(queryOf(query), ctx)
        return { body: { traces: roots.map(rootWire), next_cursor: next ?? null } }
      },
    },
    trace: {
      method: 'GET',
      path: `${PATH}/:id`,
      summary: 'Read a trace with its spans',
      scope: 'read',
      untraced: true,
      query: readQuery,
      responses: ok(
        'The trace, and a page of its spans in the order in which they ended.',
        object({
          trace_id: HEX,
          roots: { type: 'array', items: root },
          spans: { type: 'array', items: span },
          next_cursor: nullable('string'),
        })
      ),
      async handle({ params, query: { limit, cursor } }, ctx) {
        await settle(ctx)
        const id = params.id!
        const page = await reader.read(id, { limit: Number(limit ?? SPANS), ...(cursor === undefined ? {} : { cursor }) }, ctx)
        const { roots, spans, next } = page
        return {
          body: {
            trace_id: id,
            roots: roots.map(rootWire),
            spans: spans.map(one => spanWire(id, one)),
            next_cursor: next ?? null,
          },
        }
      },
    },
  }
}

function queryOf({ from, to, min_ms, limit, q, status, reads, ...rest }: Readonly<Record<string, string>>): TraceQuery {
  return {
    ...rest,
    ...(from === undefined ? {} : { from: timeIn('from', from) }),
    ...(to === undefined ? {} : { to: timeIn('to', to) }),
    ...(min_ms === undefined ? {} : { minMs: Number(min_ms) }),
    ...(q === undefined ? {} : { text: q }),
    ...(reads === 'false' ? { hasReads: false } : {}),
    ...(status === undefined ? {} : { status: status as NonNullable<TraceQuery['status']> }),
    limit: Number(limit ?? PAGE),
  }
}

function timeIn(field: string, text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time))
    throw svcError('INVALID_VALUE', `${field} is not a time`, {
      details: { field, reason: 'must be a time', value: text.slice(0, 100) },
    })
  return time
}

/** Milliseconds with the resolution of a microsecond. */
const msOf = (start: number, end: number) => Math.round((end - start) * 1_000) / 1_000
/** Unix nanoseconds as text, as in OpenTelemetry's JSON: they exceed what a JSON number holds exactly. */
const nanosOf = (ms: number) => String(BigInt(Math.round(ms * 1_000)) * 1_000n)

function rootWire(record: RootRecord) {
  const { trace, span, parent, name, kind, start, end, reason, principal, request, conversation, run, plugin, models } = record
  return {
    trace_id: trace,
    span_id: span,
    ...(parent === undefined ? {} : { parent_span_id: parent }),
    name,
    kind,
    started_at: new Date(start).toISOString(),
    duration_ms: end === undefined ? null : msOf(start, end),
    status: statusOf(record),
    error_code: reason ?? null,
    principal,
    request_id: request,
    conversation_id: conversation ?? null,
    run_id: run ?? null,
    plugin,
    models,
    usage: { input_tokens: record.input, output_tokens: record.output },
    cost: record.cost ?? null,
    spans: record.spans,
    errors: record.errors,
  }
}

const eventWire = ({ name, atMs, attributes: more }: SpanEvent) => ({ name, time_unix_nano: nanosOf(atMs), attributes: more })

function spanWire(trace: string, { s, p, n, k = 'internal', a, e, f, x = {}, v = [], g, c }: StoredSpan) {
  return {
    trace_id: trace,
    span_id: s,
    ...(p === undefined ? {} : { parent_span_id: p }),
    name: n,
    kind: k,
    start_time_unix_nano: nanosOf(a),
    ...(e === undefined ? {} : { end_time_unix_nano: nanosOf(e), duration_ms: msOf(a, e) }),
    status: f === undefined ? { code: 'unset' } : { code: 'error', message: f },
    attributes: { ...x, ...c },
    events: v.map(eventWire),
    plugin: g,
    ...(typeof x['svc.cost'] === 'number' ? { cost: x['svc.cost'] } : {}),
  }
}
