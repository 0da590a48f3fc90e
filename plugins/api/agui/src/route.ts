import { type Fields, settlesIn, toPublicError } from '@svc/api-types'
import { type CallContext, codeOf, type JsonSchema, svcError } from '@svc/core'
import type {
  Chat,
  Http,
  NamedModels,
  PublicError,
  Route,
  RouteRequest,
  RouteStreamItem,
  TurnEvent,
  TurnRequest,
} from '@svc/core/contracts'
import { RunWriter } from './events.ts'
import { readRun } from './input.ts'

const LARGEST_BODY = 32 * 1024 * 1024
/** Milliseconds for which the head of the stream waits for the model, so that an early failure has a status. Then heartbeats begin. */
const HOLD_MS = 15_000

interface Services {
  readonly chat: Chat
  readonly http: Http
  readonly named?: NamedModels | undefined
}

/** `POST /api/v1/agui/{profile}`. */
export const createRunRoute = (services: Services): Route => ({
  method: 'POST',
  path: '/api/v1/agui/:profile',
  summary: 'Run a profile as an agent of AG-UI',
  description:
    'A profile, or team:<name> or workflow:<name>, in the protocol AG-UI 1.0, for frontends such as CopilotKit. The tools of svc run inside of the run, and are shown with their results. A call of a tool of the client ends the run; its result comes in the messages of the next one.',
  scope: 'chat',
  query: { type: 'object', additionalProperties: false, properties: {} },
  bodyLimit: LARGEST_BODY,
  body: BODY,
  responses: {
    '200': {
      description: 'Events of AG-UI as server-sent events. The last one is RUN_FINISHED or RUN_ERROR.',
      schema: { type: 'string' },
      contentType: 'text/event-stream',
    },
  },
  streams: 'text/event-stream',
  stream: (request, ctx) => run(request, services, ctx),
})

/** The members are checked in `input.ts`, because clients send null for those that they do not set. */
const BODY: JsonSchema = {
  title: 'RunAgentInput',
  type: 'object',
  required: ['threadId', 'runId', 'messages'],
  properties: {
    threadId: { description: 'The id of the conversation, which the client keeps.' },
    runId: { description: 'The id of this run.' },
    messages: { description: 'The conversation so far, of the roles of AG-UI. The last one is of the user, or a result.' },
    tools: { description: 'Tools of the client, at most 1024. They take precedence over tools of svc.' },
    context: { description: 'Information of the application for the agent: description and value.' },
    state: { description: 'The state of the application. The agent reads it, and does not change it.' },
    forwardedProps: { description: '`interactive: true`: the client answers svc.ask events at POST /api/v1/chat/answer.' },
  },
}

async function* run({ body, params }: RouteRequest, services: Services, ctx: CallContext): AsyncGenerator<RouteStreamItem, void> {
  const asked = readRun(body as Fields, params.profile!)
  const { http } = services
  const writer = new RunWriter(asked)
  const events = eventsOf(params.profile!, asked.turn, services, ctx)[Symbol.asyncIterator]()
  let isOpen = false
  try {
    const first = events.next()
    // an error before the head is an ordinary error record
    if (await settlesIn(HOLD_MS, first)) await first
    isOpen = true
    yield writer.started()
    for (let step = await first; !step.done; step = await events.next()) {
      const text = await framesOf(step.value, writer, http, ctx)
      if (text !== '') yield text
    }
  } catch (error) {
    if (!isOpen) throw withUnknownProfile(error, params.profile!)
    if (ctx.signal.aborted && !isCut(ctx)) throw error
    yield writer.failed(await explained(toPublicError(isCut(ctx) ? ctx.signal.reason : error), http, ctx))
  } finally {
    await events.return?.()
  }
}

/** The events of a profile, or of a team or workflow, which are called like models. */
function eventsOf(agent: string, turn: TurnRequest, { chat, named }: Services, ctx: CallContext): AsyncIterable<TurnEvent> {
  return named && /^(team|workflow):/.test(agent) ? runOf(agent, turn, named, ctx) : chat.stream(turn, ctx)
}

/** A run of a team or workflow, in the events of a turn: its result is the text. Only the last message of the user is its task. */
async function* runOf(name: string, turn: TurnRequest, named: NamedModels, ctx: CallContext): AsyncGenerator<TurnEvent, void> {
  const { messages = [], clientTools: tools } = turn
  const request = { messages, ...(tools ? { tools } : {}) }
  const common = { requestId: ctx.requestId, conversationId: '' }
  let index = 0
  for await (const event of named.stream({ name, request }, ctx)) {
    const timestamp = new Date().toISOString()
    if (event.type === 'start') yield { ...common, type: 'start', timestamp, provider: event.provider, model: event.model }
    else if (event.type === 'text') yield { type: 'token', content: event.text, index: index++ }
    else if (event.type === 'end' && event.status !== 'failed') {
      // the error of a run that failed is thrown next
      const { status, provider, model, durationMs, usage } = event
      const whole = { ...usage, total: usage.input + usage.output }
      yield { ...common, type: 'end', timestamp, status, provider, model, durationMs, usage: whole, toolsUsed: [] }
    }
  }
}

/** The profile is in the path, so an unknown one is not found. */
function withUnknownProfile(error: unknown, profile: string): unknown {
  const { details } = toPublicError(error)
  const isUnknown = codeOf(error) === 'MODEL_NOT_FOUND' || (codeOf(error) === 'INVALID_VALUE' && details.field === 'profile')
  if (!isUnknown) return error
  const value = profile.slice(0, 200)
  return svcError('INVALID_VALUE', 'profile not found', {
    cause: error,
    details: { field: 'profile', value, reason: 'not found' },
  })
}

async function framesOf(event: TurnEvent, writer: RunWriter, http: Http, ctx: CallContext): Promise<string> {
  if (event.type !== 'end') return writer.take(event)
  const { failure } = writer
  if (failure) return writer.failed(await explained(failure, http, ctx), event)
  if (event.status === 'cancelled' && isCut(ctx))
    return writer.failed(await explained(toPublicError(ctx.signal.reason), http, ctx))
  return writer.finished(event)
}

/** Whether the server stops while the client is still connected. */
const isCut = ({ signal }: CallContext) => signal.aborted && codeOf(signal.reason) === 'UNAVAILABLE'

/** The error as the API answers it, in the form of AG-UI. */
async function explained(error: PublicError, http: Http, ctx: CallContext) {
  const { record } = await http.explain(error, ctx)
  return { message: record.error, code: record.error_code }
}
