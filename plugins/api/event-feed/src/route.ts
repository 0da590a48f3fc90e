import { cloudEvent, EVENT_TYPE, TYPE_PATTERN, typeFilter } from '@svc/api-types'
import type { CallContext, JsonSchema } from '@svc/core'
import type { FeedEvent, FeedQuery, Route } from '@svc/core/contracts'
import { plainFrame, retryField } from '@svc/provider-http/sse'
import type { FeedReading } from './ring.ts'

const name = (description: string): JsonSchema => ({ type: 'string', minLength: 1, maxLength: 200, description })

const QUERY: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    types: {
      type: 'string',
      maxLength: 2_000,
      pattern: `^(?:${TYPE_PATTERN})(?:,(?:${TYPE_PATTERN}))*$`,
      patternHint: 'must be types of events, separated by commas, such as turn_completed,run_*',
      description: 'Types of events, separated by commas; `turn_*` selects all that begin with `turn_`. Default: all.',
    },
    conversation_id: name('Only events of this conversation.'),
    run_id: name('Only events of this run of a workflow.'),
    request_id: name('Only events of this request.'),
    after: {
      type: 'string',
      minLength: 1,
      description: 'Begins after the event with this id of the stream. The header Last-Event-ID overrides it.',
    },
  },
}

const text = { type: 'string' }
const EVENT: JsonSchema = {
  title: 'CloudEvent',
  type: 'object',
  properties: {
    specversion: { const: '1.0' },
    id: { type: 'string', description: 'Unique. The id of the stream is another: a position in the events of all workers.' },
    source: { type: 'string', description: 'The worker where it happened.' },
    type: { type: 'string', description: 'Such as `svc.turn_completed`.' },
    time: { type: 'string', format: 'date-time' },
    subject: { type: 'string', description: 'The subject of the event, such as `conversations/<id>`.' },
    datacontenttype: { const: 'application/json' },
    category: text,
    principal: { type: 'string', description: 'The principal of the request that caused it.' },
    requestid: text,
    data: { type: 'object', description: 'Ids, names, numbers and codes. It contains no content and no secrets.' },
  },
  required: ['specversion', 'id', 'source', 'type', 'time', 'datacontenttype', 'category', 'principal', 'requestid', 'data'],
}

const RESPONSES = {
  '200': {
    description:
      'Server-sent events with the lines id, event and data. The event is the type in its data. Callers without the scope admin receive the events of their own requests. The event svc.events_lost has no id; its data is the number of events, of all principals, that the server no longer keeps, or that the client was too slow to read; a worker that was killed counts as one. The stream begins with an id without data: the position from which it starts. Further ones move the position past events that the filter does not select. Comments are heartbeats. If the server ends the stream, its last line is retry with the milliseconds to wait: connect again with Last-Event-ID.',
    schema: EVENT,
    contentType: 'text/event-stream',
  },
}

/** Events that the filter skips before the position of the client is moved. */
const MOST_SKIPPED = 100

type ReadFeed = (query: FeedQuery, signal: AbortSignal) => FeedReading

/** `GET /api/v1/events`. `leaving` aborts when the server ends its streams. */
export const createEventsRoute = (read: ReadFeed, leaving: AbortSignal): Route => ({
  method: 'GET',
  path: '/api/v1/events',
  summary: 'Stream the events of the server',
  scope: 'read',
  query: QUERY,
  responses: RESPONSES,
  streams: 'text/event-stream',
  endless: true,
  async *stream({ query, headers }, ctx) {
    const { 'last-event-id': last = '' } = headers
    const after = last === '' ? query.after : last
    // an unknown position is an ordinary error response
    const { cursor, events } = read(after === undefined ? {} : { after }, AbortSignal.any([ctx.signal, leaving]))
    // the workers begin to collect events before the client knows that the stream is open
    const first = events.next()
    yield positionFrame(cursor)
    yield* framesOf(first, events, createFilter(query, ctx))
    if (leaving.aborted) yield `${retryField()}\n`
  },
})

/** It has no data, so it is not an event. Clients remember its id. */
const positionFrame = (cursor: string) => `id: ${cursor}\n\n`

async function* framesOf(
  first: Promise<IteratorResult<FeedEvent>>,
  events: AsyncIterator<FeedEvent>,
  isWanted: (event: FeedEvent) => boolean
): AsyncGenerator<string, void> {
  let skipped = 0
  try {
    for (let step = await first; !step.done; step = await events.next()) {
      const { value: event } = step
      if (event.lost > 0) yield lostFrame(event.lost)
      if (isWanted(event)) {
        skipped = 0
        yield `id: ${event.cursor}\n${plainFrame(`${EVENT_TYPE}${event.type}`, JSON.stringify(cloudEvent(event)))}`
      } else if (++skipped === MOST_SKIPPED) {
        skipped = 0
        yield positionFrame(event.cursor)
      }
    }
  } finally {
    await events.return?.()
  }
}

const lostFrame = (count: number) =>
  plainFrame(
    `${EVENT_TYPE}events_lost`,
    JSON.stringify({ type: `${EVENT_TYPE}events_lost`, time: new Date().toISOString(), data: { count } })
  )

/** Selects what the caller asks for and may see. */
function createFilter(query: Readonly<Record<string, string>>, { principal }: CallContext): (event: FeedEvent) => boolean {
  const { types, conversation_id: conversation, run_id: run, request_id: request } = query
  const isType = typeFilter(types?.split(',') ?? [])
  const seesAll = principal.scopes.includes('admin') || principal.scopes.includes('*')
  return ({ type, data, requestId, principal: by }) =>
    (seesAll || by === principal.id) &&
    isType(type) &&
    (conversation ?? data.conversation_id) === data.conversation_id &&
    (run ?? data.run) === data.run &&
    (request ?? requestId) === requestId
}
