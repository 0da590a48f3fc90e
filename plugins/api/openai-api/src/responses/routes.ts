import type { CallContext, Log } from '@svc/core'
import type { Jobs, ModelCallBegun, Route, RouteReply, RouteRequest, RouteStreamItem } from '@svc/core/contracts'
import { integerIn, isSet, keyOf, type Wire, wordIn } from '../fields.ts'
import { invalidParam } from '../errors.ts'
import { AnswerStart, settledIn } from '../answer-start.ts'
import { cancelled, queue, reconciled, shownResponse, storedEvents } from './background.ts'
import { backgroundUnavailable, failureOf, notInBackground, replyOf, responseError } from './errors.ts'
import { headersOf, itemOps, outputOf, type Prepared, prepare, type ResponseServices, storeOps } from './making.ts'
import type { Output, ResponseEvent } from './output.ts'
import { readResponse } from './request.ts'
import { idOf } from './store.ts'

const LARGEST_BODY = 32 * 1024 * 1024

export interface RouteServices extends ResponseServices {
  /** Milliseconds for which the head of a stream waits for the first part, so that a failure gets its status. Then heartbeats begin. */
  readonly holdMs: number
  readonly jobs: Jobs | undefined
  readonly log: Log
}

const STREAMED = { description: 'The response, or with stream its events.' }

/** The routes of responses, by name. */
export const createResponseRoutes = (services: RouteServices): Readonly<Record<string, Route>> => ({
  openai_responses: {
    method: 'POST',
    path: '/v1/responses',
    summary: 'Create a response',
    description:
      'The model decides who answers: a model gets the request as it is; in an agent (profile:<name>), the tools of svc run.',
    scope: 'chat',
    bodyLimit: LARGEST_BODY,
    body: BODY,
    responses: { '200': { ...STREAMED, schema: RESPONSE } },
    streams: 'text/event-stream',
    stream: (request, ctx) => create(request, services, ctx),
  },
  openai_response: {
    method: 'GET',
    path: '/v1/responses/:id',
    summary: 'Get a stored response',
    description: 'With stream, the events of a response that was made in the background, from starting_after on.',
    scope: 'chat',
    responses: { '200': { ...STREAMED, schema: RESPONSE } },
    streams: 'text/event-stream',
    stream: (request, ctx) => retrieve(request, services, ctx),
  },
  ...createStoredRoutes(services),
})

type Handle = NonNullable<Route['handle']>

/** The routes of stored responses that answer at once. */
function createStoredRoutes(services: RouteServices): Readonly<Record<string, Route>> {
  const handled =
    (handle: (request: RouteRequest, services: RouteServices, ctx: CallContext) => Promise<RouteReply>): Handle =>
    async (request, ctx) => {
      try {
        return await handle(request, services, ctx)
      } catch (error) {
        return replyOf(await failureOf(error, services.http, ctx))
      }
    }
  return {
    openai_response_delete: {
      method: 'DELETE',
      path: '/v1/responses/:id',
      summary: 'Delete a stored response',
      description: 'Cancels a response in the background. The last response of a conversation deletes the conversation.',
      scope: 'chat',
      responses: { '200': { description: 'The response is deleted.', schema: { type: 'object' } } },
      handle: handled(remove),
    },
    openai_response_cancel: {
      method: 'POST',
      path: '/v1/responses/:id/cancel',
      summary: 'Cancel a response in the background',
      scope: 'chat',
      responses: { '200': { description: 'The response. One that has ended is unchanged.', schema: RESPONSE } },
      handle: handled(cancel),
    },
    openai_response_items: {
      method: 'GET',
      path: '/v1/responses/:id/input_items',
      summary: 'List the input items of a stored response',
      scope: 'chat',
      responses: { '200': { description: 'The items, newest first.', schema: { type: 'object' } } },
      handle: handled(inputItems),
    },
  }
}

/** All fields are in docs/reference/endpoints.md. The route checks them itself, as clients send null for fields that they do not set. */
const BODY = {
  type: 'object',
  required: ['model'],
  properties: {
    model: { description: 'A name of GET /v1/models.' },
    input: { description: 'A text, or the items of the conversation.' },
    instructions: { description: 'Instructions before the input.' },
    tools: { description: 'Tools of the client that the model can call, at most 1024.' },
    stream: { description: 'Send events while the response is made.' },
    store: { description: 'Store the response and its conversation.' },
    background: { description: 'Make the response in the background.' },
    previous_response_id: { description: 'A stored response that this one continues.' },
  },
} as const

const RESPONSE = { type: 'object', properties: { id: { type: 'string' }, object: { const: 'response' } } } as const

const frame = (event: ResponseEvent): string => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
const frames = (events: readonly ResponseEvent[]): string => events.map(frame).join('')
const DONE = 'data: [DONE]\n\n'

async function* create(request: RouteRequest, services: RouteServices, ctx: CallContext): AsyncGenerator<RouteStreamItem, void> {
  let prepared: Prepared
  let start: ModelCallBegun | undefined
  try {
    const asked = readResponse(request.body as Wire)
    if (asked.background && !services.jobs) throw backgroundUnavailable()
    prepared = await prepare(asked, services, ctx)
    prepared = { ...prepared, call: { ...prepared.call, ...keyOf(request) } }
    if (prepared.kept === 'response') await services.responses.checkRoom(ctx)
    if (asked.background) start = await services.named.check(prepared.call, ctx)
  } catch (error) {
    yield replyOf(await failureOf(error, services.http, ctx))
    return
  }
  if (start) yield* inBackground(request.body as Wire, prepared, start, services, ctx)
  else yield* prepared.asked.stream ? streamed(prepared, services, ctx) : whole(prepared, services, ctx)
}

async function* inBackground(
  body: Wire,
  prepared: Prepared,
  start: ModelCallBegun,
  services: RouteServices,
  ctx: CallContext
): AsyncGenerator<RouteStreamItem, void> {
  const { asked, hex } = prepared
  try {
    const response = await queue(prepared, body, { ...services, jobs: services.jobs! }, ctx)
    const headers = await headersOf(start, asked, services.named, ctx)
    if (!asked.stream) {
      yield { headers, body: response }
      return
    }
    yield { headers }
  } catch (error) {
    yield replyOf(await failureOf(error, services.http, ctx))
    return
  }
  const found = await services.responses.read(`resp_${hex}`, ctx)
  for await (const event of storedEvents(found, -1, services, ctx)) yield frame(event)
  yield DONE
}

/** Stores a response that is made, if it is to be kept. */
async function keep(
  prepared: Prepared,
  finished: { readonly response: Wire; readonly output: Output },
  services: RouteServices,
  ctx: CallContext
): Promise<void> {
  const { responses, log } = services
  if (prepared.kept === 'response') await responses.write(await storeOps(prepared, finished, services, ctx), {}, ctx)
  if (prepared.kept !== 'items') return
  try {
    await responses.write(itemOps(prepared, finished, services, ctx), {}, ctx)
  } catch (err) {
    // the client has not asked for it
    log.warn({ err, request_id: ctx.requestId }, 'failed to keep the items of a response')
  }
}

async function* whole(prepared: Prepared, services: RouteServices, ctx: CallContext): AsyncGenerator<RouteStreamItem, void> {
  const { asked, call } = prepared
  const output = outputOf(prepared)
  let begin: AnswerStart | undefined
  const events = services.named.stream(call, ctx)[Symbol.asyncIterator]()
  try {
    begin = new AnswerStart(events)
    const first = await begin.read()
    if (begin.start) output.take(begin.start)
    if (first) output.take(first)
    for (let step = await events.next(); !step.done; step = await events.next())
      if (step.value.type !== 'end' || step.value.status === 'completed') output.take(step.value)
    const { response } = output.finish()
    await keep(prepared, { response, output }, services, ctx)
    yield { headers: await headersOf(begin.start, asked, services.named, ctx), body: response }
  } catch (error) {
    yield replyOf(await failureOf(error, services.http, ctx))
  } finally {
    await events.return?.()
  }
}

async function* streamed(prepared: Prepared, services: RouteServices, ctx: CallContext): AsyncGenerator<RouteStreamItem, void> {
  const { asked, call } = prepared
  const { named, http } = services
  const output = outputOf(prepared)
  const events = named.stream(call, ctx)[Symbol.asyncIterator]()
  let isOpen = false
  try {
    const begin = new AnswerStart(events)
    const reading = begin.read()
    await settledIn(services.holdMs, reading)
    yield { headers: await headersOf(begin.start, asked, named, ctx) }
    isOpen = true
    yield frames(output.begin())
    const first = await reading
    if (begin.start) output.take(begin.start)
    if (first) yield* framesOf(output.take(first))
    for (let step = await events.next(); !step.done; step = await events.next()) {
      // after the end of a call that failed, its error follows
      if (step.value.type !== 'end' || step.value.status === 'completed') yield* framesOf(output.take(step.value))
    }
    yield* ended(prepared, output, services, ctx)
  } catch (error) {
    if (!isOpen) yield replyOf(await failureOf(error, http, ctx))
    else yield frames(output.fail(await responseError(error, http, ctx)).events) + DONE
  } finally {
    await events.return?.()
  }
}

function* framesOf(events: readonly ResponseEvent[]): Generator<string, void> {
  if (events.length > 0) yield frames(events)
}

/** The last events. The last one is sent when the response is stored. */
async function* ended(
  prepared: Prepared,
  output: Output,
  services: RouteServices,
  ctx: CallContext
): AsyncGenerator<RouteStreamItem, void> {
  const { events, response } = output.finish()
  const last = events.at(-1)!
  yield* framesOf(events.slice(0, -1))
  try {
    await keep(prepared, { response, output }, services, ctx)
  } catch (error) {
    const [failed] = output.fail(await responseError(error, services.http, ctx)).events
    yield frame({ ...failed!, sequence_number: last.sequence_number }) + DONE
    return
  }
  yield frame(last) + DONE
}

/** What of a stored response the client wants to see. A client writes the parameter as a list. */
function wantsEncrypted(query: RouteRequest['query']): boolean {
  return Object.entries(query).some(
    ([name, value]) => /^include(\[\d*\])?$/.test(name) && value === 'reasoning.encrypted_content'
  )
}

async function* retrieve(
  { params, query }: RouteRequest,
  services: RouteServices,
  ctx: CallContext
): AsyncGenerator<RouteStreamItem, void> {
  const after = () => (query.starting_after === undefined ? -1 : integerIn(Number(query.starting_after), 'starting_after', 0))
  let events: AsyncIterable<ResponseEvent>
  try {
    const stored = await services.responses.read(params.id!, ctx)
    const found = await reconciled(stored, services, ctx)
    if (query.stream !== 'true') {
      const shows = { ...found.record.shows, encrypted: found.record.shows.encrypted || wantsEncrypted(query) }
      yield { body: await shownResponse(found, shows, services, ctx) }
      return
    }
    if (found.record.job === undefined) throw notInBackground('streamed again')
    events = storedEvents(found, after(), services, ctx)
    yield { headers: {} }
  } catch (error) {
    yield replyOf(await failureOf(error, services.http, ctx))
    return
  }
  for await (const event of events) yield frame(event)
  yield DONE
}

async function cancel({ params }: RouteRequest, services: RouteServices, ctx: CallContext): Promise<RouteReply> {
  const found = await services.responses.read(params.id!, ctx)
  if (found.record.job === undefined) throw notInBackground('cancelled')
  const ended = await cancelled(found, services, ctx)
  return { body: await shownResponse(ended, ended.record.shows, services, ctx) }
}

async function remove({ params }: RouteRequest, services: RouteServices, ctx: CallContext): Promise<RouteReply> {
  const found = await services.responses.read(params.id!, ctx)
  const ended = await cancelled(found, services, ctx)
  await services.responses.remove(ended)
  return { body: { id: idOf(ended), object: 'response', deleted: true } }
}

const [LEAST_ITEMS, MOST_ITEMS, USUAL_ITEMS] = [1, 100, 20]

async function inputItems({ params, query }: RouteRequest, { responses }: RouteServices, ctx: CallContext): Promise<RouteReply> {
  const limit = isSet(query.limit) ? integerIn(Number(query.limit), 'limit', LEAST_ITEMS, MOST_ITEMS) : USUAL_ITEMS
  const order = isSet(query.order) ? wordIn(query.order, 'order', ['asc', 'desc']) : 'desc'
  const found = await responses.read(params.id!, ctx)
  const { input } = await responses.data(found, ctx)
  const items = (order === 'asc' ? input : [...input].reverse()) as readonly { readonly id: string }[]
  const from = query.after === undefined ? 0 : items.findIndex(({ id }) => id === query.after) + 1
  if (query.after !== undefined && from === 0) throw invalidParam('after', 'must be the id of an item of the response')
  const data = items.slice(from, from + limit)
  return {
    body: {
      object: 'list',
      data,
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: from + limit < items.length,
    },
  }
}
