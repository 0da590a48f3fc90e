import { type CallContext, type JsonSchema, pause, svcError } from '@svc/core'
import type { Json, Route } from '@svc/core/contracts'
import { HEARTBEAT, plainFrame, retryField } from '@svc/provider-http/sse'
import { type Gathering, type LogFilter, type LogPosition, textOf, type WorkerLine } from './gathering.ts'

const [PAGE, MOST] = [100, 1_000]
/** How often a stream asks the workers for new lines. */
const POLL_MS = 500
const LEVELS: Readonly<Record<string, number>> = { debug: 20, info: 30, warn: 40, error: 50 }
const NAMES = new Map(Object.entries(LEVELS).map(([name, level]) => [level, name]))

const QUERY: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    level: { type: 'string', enum: Object.keys(LEVELS), description: 'The lowest level. Default: debug, if the log has it.' },
    request_id: { type: 'string', minLength: 1, maxLength: 200, description: 'Only lines of this request.' },
    since: { type: 'string', maxLength: 40, description: 'Only lines from this time on (ISO 8601).' },
    text: { type: 'string', minLength: 1, maxLength: 200, description: 'Only lines that contain this text, in any case.' },
    limit: { type: 'integer', minimum: 1, maximum: MOST, description: `Maximum lines; default ${PAGE}. The last ones.` },
    follow: {
      type: 'boolean',
      description: 'Streams these and then new lines, as does the header `Accept: text/event-stream`.',
    },
  },
}

const LINE: JsonSchema = {
  title: 'LogLine',
  type: 'object',
  properties: {
    time: { type: 'string', format: 'date-time' },
    level: { type: 'string', enum: Object.keys(LEVELS) },
    worker: { type: 'string' },
    plugin: { type: ['string', 'null'] },
    message: { type: 'string' },
    request_id: { type: ['string', 'null'] },
    principal: { type: ['string', 'null'] },
    fields: { type: 'object', description: 'All other fields of the line.' },
  },
  required: ['time', 'level', 'worker', 'plugin', 'message', 'request_id', 'principal', 'fields'],
}

const RESPONSES = {
  '200': {
    description:
      'The last lines of all workers, oldest first. `complete` is false if a worker did not answer. Callers without the scope admin see the lines that name them as principal. With `follow`: server-sent events `log_line` whose data is a line; if the server ends the stream, its last line is retry.',
    schema: {
      type: 'object',
      properties: { lines: { type: 'array', items: LINE }, complete: { type: 'boolean' } },
      required: ['lines', 'complete'],
    },
    events: LINE,
  },
}

/** `GET /api/v1/logs`. `leaving` aborts when the server ends its streams. */
export const createLogsRoute = (gathering: Gathering, leaving: AbortSignal): Route => ({
  method: 'GET',
  path: '/api/v1/logs',
  summary: 'Read or follow the log of the server',
  description: 'Each worker keeps its last 1000 lines, at most 512 KiB. Secrets are replaced, as in the log itself.',
  scope: 'read',
  query: QUERY,
  responses: RESPONSES,
  streams: 'text/event-stream',
  endless: true,
  async *stream({ query, headers }, ctx) {
    const filter = filterOf(query, ctx)
    const isFollowing = query.follow === undefined ? wantsEvents(headers.accept) : query.follow === 'true'
    if (isFollowing) yield* follow(gathering, filter, leaving, ctx)
    else {
      const { lines, isComplete } = await gathering.read(filter, {}, ctx)
      yield { body: { lines: lines.map(shown), complete: isComplete } }
    }
  },
})

const wantsEvents = (accept = '') => /\btext\/event-stream\b/i.test(accept)

async function* follow(
  gathering: Gathering,
  filter: LogFilter,
  leaving: AbortSignal,
  ctx: CallContext
): AsyncGenerator<string, void> {
  const signal = AbortSignal.any([ctx.signal, leaving])
  let position: LogPosition = {}
  yield HEARTBEAT
  try {
    for (let limit = filter.limit; ; limit = MOST) {
      const gathered = await gathering.read({ ...filter, limit }, position, { ...ctx, signal })
      position = gathered.position
      for (const line of gathered.lines) yield plainFrame('log_line', JSON.stringify(shown(line)))
      await pause(POLL_MS, signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  if (leaving.aborted) yield `${retryField()}\n`
}

function filterOf(query: Readonly<Record<string, string>>, { principal }: CallContext): LogFilter {
  const { level, request_id: requestId, since, text, limit } = query
  const seesAll = principal.scopes.includes('admin') || principal.scopes.includes('*')
  return {
    level: LEVELS[level ?? 'debug']!,
    limit: limit === undefined ? PAGE : Number(limit),
    ...(requestId === undefined ? {} : { requestId }),
    ...(since === undefined ? {} : { since: timeOf(since) }),
    ...(text === undefined ? {} : { text: text.toLowerCase() }),
    ...(seesAll ? {} : { principal: principal.id }),
  }
}

const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/

function timeOf(text: string): number {
  const time = TIME.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time)) {
    const reason = 'must be a time, such as 2026-11-28T07:00:00Z'
    throw svcError('INVALID_VALUE', `since ${reason}`, { details: { field: 'since', reason } })
  }
  return time
}

function shown({ worker, record }: WorkerLine): Json {
  const { time, level, plugin, msg, request_id, principal, ...fields } = record
  return {
    time: textOf(time),
    level: NAMES.get(Number(level)) ?? textOf(level),
    worker,
    plugin: plugin ?? null,
    message: msg === undefined ? '' : textOf(msg),
    request_id: request_id ?? null,
    principal: principal ?? null,
    fields,
  }
}
