import type { CallContext } from '@svc/core'
import type { Http, ModelCallBegun, NamedCall, NamedModels, Route, RouteRequest, RouteStreamItem } from '@svc/core/contracts'
import { lazyStream } from '@svc/plugin-kit'
import { errorFrame, modelFailure, renamed } from '../errors.ts'
import { droppedBy, droppedHeader, keyOf, nativeRequest, refuseForeign, type Wire } from '../fields.ts'
import { AnswerStart, settledIn } from '../answer-start.ts'
import { ChunkWriter } from './chunks.ts'
import { type AskedChat, DEFAULTS, PROTOCOL, readChat } from './request.ts'
import { WholeAnswer } from './whole.ts'

const LARGEST_BODY = 32 * 1024 * 1024
interface Services {
  readonly named: NamedModels
  readonly http: Http
  /** Milliseconds for which the head of a stream waits for the first part, so that a failure gets its status. Then heartbeats begin. */
  readonly holdMs: number
}

/** `POST /v1/chat/completions`. */
export function createChatRoute(services: Services): Route {
  return {
    method: 'POST',
    path: '/v1/chat/completions',
    summary: 'Create a chat completion',
    description:
      'The model decides who answers: a model gets the request as it is; in an agent, such as profile:default, the tools of svc run.',
    scope: 'chat',
    bodyLimit: LARGEST_BODY,
    body: BODY,
    responses: {
      '200': { description: 'The completion, or with stream its chunks as server-sent events.', schema: { type: 'object' } },
    },
    streams: 'text/event-stream',
    stream: (request, ctx) => lazyStream(() => answer(request, services, ctx)),
  }
}

/** All fields are in docs/reference/endpoints.md. The route checks them itself, as clients send null for fields that they do not set. */
const BODY = {
  type: 'object',
  required: ['model', 'messages'],
  properties: {
    model: { description: 'A name of GET /v1/models.' },
    messages: { description: 'The messages so far, of the roles system, developer, user, assistant and tool.' },
    stream: { description: 'Send the answer in pieces.' },
    tools: { description: 'Functions of the client that the model can call, at most 1024.' },
  },
} as const

/** Reads the request. Returns the answer: a generator that passed on the items of another would cost a promise more for each token. */
async function answer(request: RouteRequest, services: Services, ctx: CallContext): Promise<AsyncIterable<RouteStreamItem>> {
  const body = request.body as Wire
  const asked = readChat(body)
  await refuseForeign(asked.leftovers, asked.model, PROTOCOL, services.named, ctx)
  const native = nativeRequest(PROTOCOL, body, request.headers)
  const call: NamedCall = { name: asked.model, request: { ...asked.request, native }, defaults: DEFAULTS, ...keyOf(request) }
  return asked.stream ? streamed(call, asked, services, ctx) : whole(call, asked, services, ctx)
}

const headersFor = async (start: ModelCallBegun | undefined, asked: AskedChat, named: NamedModels, ctx: CallContext) =>
  start ? droppedHeader(await droppedBy(start, { ...asked, protocol: PROTOCOL }, named, ctx)) : {}

async function* whole(call: NamedCall, asked: AskedChat, { named, http }: Services, ctx: CallContext) {
  const gathered = new WholeAnswer(asked.model, asked.request.logprobs !== undefined)
  let start: ModelCallBegun | undefined
  try {
    for await (const event of named.stream(call, ctx)) {
      if (event.type === 'start') start = event
      gathered.take(event)
    }
  } catch (error) {
    const failure = await modelFailure(error, 'messages', http, ctx)
    if (!failure) throw renamed(error, asked.names)
    yield { status: failure.status, headers: failure.headers, body: { error: failure.error } }
    return
  }
  yield { headers: await headersFor(start, asked, named, ctx), body: gathered.wire() }
}

async function* streamed(
  call: NamedCall,
  asked: AskedChat,
  { named, http, holdMs }: Services,
  ctx: CallContext
): AsyncGenerator<RouteStreamItem, void> {
  const events = named.stream(call, ctx)[Symbol.asyncIterator]()
  const chunks = new ChunkWriter({ ...asked, hasLogprobs: asked.request.logprobs !== undefined })
  let isOpen = false
  try {
    const begin = new AnswerStart(events)
    const reading = begin.read()
    await settledIn(holdMs, reading)
    yield { headers: await headersFor(begin.start, asked, named, ctx) }
    isOpen = true
    const first = await reading
    if (begin.start) chunks.take(begin.start)
    const held = begin.early.map(event => chunks.take(event)).join('') + (first ? chunks.take(first) : '')
    if (held !== '') yield held
    for (let step = await events.next(); !step.done; step = await events.next()) {
      // after the end of a call that failed, its error follows
      if (step.value.type === 'end' && step.value.status !== 'completed') continue
      const frames = chunks.take(step.value)
      if (frames !== '') yield frames
    }
  } catch (error) {
    const failure = await modelFailure(error, 'messages', http, ctx)
    if (!failure) throw renamed(error, asked.names)
    if (isOpen) yield errorFrame(failure.error)
    else yield { status: failure.status, headers: failure.headers, body: { error: failure.error } }
  } finally {
    await events.return?.()
  }
}
