import {
  type AnswerBody,
  answerOf,
  type ChatBody,
  type ChatEvent,
  replyOf,
  turnOf,
  BOOLEAN,
  INTEGER,
  list,
  nullable,
  NUMBER,
  OBJECT,
  object,
  ok,
  STRING,
  text,
  TIME,
  words,
} from '@svc/api-types'
import { type CallContext, type JsonSchema, type SlotView, svcError } from '@svc/core'
import type { Chat, Http, Mode, Route, Selection, TurnRequest, TurnStreams } from '@svc/core/contracts'
import { framesOf } from '../frames.ts'
import { afterOf } from '../run-schemas.ts'

const tokensUsed = object({ input: INTEGER, output: INTEGER, total: INTEGER, cached: INTEGER }, ['input', 'output', 'total'])

const index: JsonSchema = { type: 'integer', minimum: 0, description: 'Index of the token in this stream.' }
const result: JsonSchema = { description: 'The result of the tool: JSON if it is structured, otherwise text.' }

const form: JsonSchema = {
  ...(OBJECT as object),
  description:
    'What a running tool wants to know, for a client with forms: schema is the JSON Schema of the content of the answer, url a page to open.',
}
const data: JsonSchema = { description: 'The reply as data, of a turn with response_schema.' }
const cost: JsonSchema = { ...(NUMBER as object), description: 'By models.prices; absent if no model had a price.' }
const partial: JsonSchema = {
  ...(object({ budget: words('tokens', 'cost'), reason: STRING }) as object),
  description: 'Set if a budget stopped the turn: the reply is not whole.',
}

const expires: JsonSchema = {
  ...(TIME as object),
  description: 'When the call stops waiting for an answer: after chat.ask_timeout_ms, or with the turn.',
}

type Fields = Parameters<typeof object>[0]

/** The fields of each event's data, besides its `type`. */
const FIELDS: {
  readonly [K in ChatEvent['type']]: { readonly [F in Exclude<keyof Extract<ChatEvent, { type: K }>, 'type'>]-?: JsonSchema }
} = {
  start: { turn_id: STRING, request_id: STRING, timestamp: TIME, conversation_id: STRING, provider: STRING, model: STRING },
  token: { content: STRING, index },
  tool_call: { tool: STRING, call_id: STRING, arguments: OBJECT },
  ask: { tool: STRING, call_id: STRING, arguments: OBJECT, question: STRING, form, expires_at: expires },
  tool_result: { tool: STRING, call_id: STRING, success: BOOLEAN, result, error: nullable('string'), duration_ms: INTEGER },
  error: { error: STRING, error_code: STRING, details: OBJECT },
  end: {
    request_id: STRING,
    timestamp: TIME,
    status: words('completed', 'failed', 'cancelled'),
    provider: STRING,
    model: STRING,
    tokens_used: tokensUsed,
    duration_ms: INTEGER,
    cost,
    partial,
    data,
  },
}
/** Fields that not every event of its type has. */
const OPTIONAL: readonly string[] = ['cost', 'data', 'expires_at', 'form', 'partial']

const MEANINGS: { readonly [K in ChatEvent['type']]: string } = {
  start: 'The turn has begun. turn_id names it to the routes that continue or cancel its stream.',
  token: 'A piece of the reply.',
  tool_call: 'A tool is about to run.',
  ask: 'A tool call waits for permission, or for the content of a form; send it to POST /api/v1/chat/answer. Only in interactive turns.',
  tool_result: 'The result of a tool call.',
  error: 'The turn failed after its start: an error record.',
  end: 'The turn has ended. Provider and model are the ones that replied.',
}

/** Returns the schema name of an event: `ToolCallEvent` for `tool_call`. */
const nameOf = (type: string) => `${type.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())}Event`

const eventSchema = (type: ChatEvent['type']): JsonSchema => {
  const fields: Fields = { type: { const: type }, ...FIELDS[type] }
  const required = Object.keys(fields).filter(name => !OPTIONAL.includes(name))
  return { title: nameOf(type), description: MEANINGS[type], ...(object(fields, required) as object) }
}

/** The data of an event of the chat stream. */
export const CHAT_EVENT: JsonSchema = {
  title: 'ChatEvent',
  oneOf: (Object.keys(FIELDS) as ChatEvent['type'][]).map(eventSchema),
}

const MOST_PARTS = 32

const part = object(
  {
    type: words('image', 'file'),
    media_type: { ...(text('The media type, such as image/png or application/pdf.') as object), maxLength: 200 },
    data: text('The content in base64.'),
    name: { ...(text('The name of the file.') as object), maxLength: 500 },
  },
  ['type', 'media_type', 'data']
)
const WHEN_SPENT = 'A first step that does not fit is refused; later, the turn completes with what it has, and with partial.'
const budget = (description: string): JsonSchema => ({ type: 'integer', minimum: 0, description })

const fields = {
  message: text('The message of the user.'),
  provider: text('Name of a provider.'),
  model: text('A model of the provider.'),
  temperature: { ...(NUMBER as object), minimum: 0, maximum: 1 },
  max_tokens: { ...(INTEGER as object), minimum: 1 },
  conversation_id: text('Continues this conversation. Without it, the server creates a conversation.'),
  tools: {
    ...(list(text()) as object),
    maxItems: 1_000,
    description: 'Names of tools. Default: the tools of the profile, otherwise of the mode. An empty list disables tools.',
  },
  profile: text('A profile for this turn.'),
  mode: text('A mode for this turn. One that allows more than the mode of the server requires the scope admin.'),
  system: { ...(text('Replaces the system prompt of the profile.') as object), maxLength: 200_000 },
  response_schema: {
    ...(OBJECT as object),
    description:
      'JSON Schema of the reply, which is then also in data. If a reply does not match, the model can correct it once.',
  },
  parts: {
    ...(list(part) as object),
    maxItems: MOST_PARTS,
    description: 'Images and files in addition to the message. The turn fails if the model does not accept them.',
  },
  tool_budget: budget('Maximum tool calls of the turn, within the limit of the mode.'),
  token_budget: budget(`Maximum input and output tokens of all model steps together. ${WHEN_SPENT}`),
  cost_budget: {
    ...(NUMBER as object),
    minimum: 0,
    description: `Maximum cost of all model steps together, by models.prices. ${WHEN_SPENT} A model without a price is refused.`,
  },
}
const chatBody = object(fields, ['message'])

const interactive = {
  ...(BOOLEAN as object),
  description:
    'The client answers ask events (POST /api/v1/chat/answer). Otherwise, the server denies tool calls that need permission.',
}
const detach = {
  ...(BOOLEAN as object),
  description:
    'The turn continues to its end without a reader. Otherwise svc cancels the turn chat.resume_s after its reader has disconnected.',
}
const forms = {
  ...(BOOLEAN as object),
  description: 'With interactive: the client also answers ask events with a form. Otherwise tools get no answer of a user.',
}
const streamBody = object({ ...fields, interactive, forms, detach }, ['message'])

const resumeQuery = object(
  {
    after: {
      type: 'integer',
      minimum: 0,
      description: 'Returns only events after this id. The header Last-Event-ID overrides it.',
    },
  },
  []
)

const answerBody = object(
  {
    request_id: text('The request_id of the start event.'),
    call_id: text('The call_id of the ask event.'),
    allow: BOOLEAN,
    reason: { ...(STRING as object), maxLength: 1_000, description: 'The reason that the model gets if you deny the call.' },
    content: {
      ...(OBJECT as object),
      description: 'The values of a form. If they do not match its schema, the server returns 400, and the question stays open.',
    },
  },
  ['request_id', 'call_id', 'allow']
)

const toolUse = object(
  { tool: STRING, call_id: STRING, arguments: OBJECT, success: BOOLEAN, duration_ms: INTEGER, error: STRING },
  ['tool', 'call_id', 'arguments', 'success', 'duration_ms']
)

const replyFields = {
  success: BOOLEAN,
  response: STRING,
  provider: STRING,
  model: STRING,
  conversation_id: STRING,
  tokens_used: tokensUsed,
  duration_ms: INTEGER,
  tools_used: list(toolUse),
}
const chatReply = object({ ...replyFields, cost, partial, data }, Object.keys(replyFields))

const stream = {
  '200': {
    description:
      'Server-sent events with the lines id, event and data. The event is the type in its data, and this is the schema of the data. The first event is start, the last is end. Between them are token, tool_call, ask and tool_result in the order in which they happen. An error comes just before an end with the status failed. If the request has no conversation_id, the server stores the new conversation with its first output. If the turn fails or the client disconnects before any output, the conversation_id of start is unknown (404). Comments are heartbeats.',
    schema: CHAT_EVENT,
    contentType: 'text/event-stream',
  },
}

interface ChatRouteOptions {
  readonly chat: Chat
  readonly selection: Selection
  readonly modes: SlotView<Mode>
  readonly turnStreams: TurnStreams
  readonly http: Http
  /** Maximum bytes of a body. */
  readonly chatBodyLimit: number
}

/** `POST /api/v1/chat` and its stream, which can be continued and cancelled. */
export const createChatRoutes = (parts: ChatRouteOptions): Record<string, Route> => ({
  ...replyRoutes(parts),
  ...streamRoutes(parts),
})

/** Checks the mode of a turn. Throws FORBIDDEN for one that allows more than that of the server, unless the caller is an administrator. */
async function checkMode({ mode }: TurnRequest, { selection, modes }: ChatRouteOptions, ctx: CallContext): Promise<void> {
  const { scopes } = ctx.principal
  if (mode === undefined || scopes.includes('admin') || scopes.includes('*')) return
  const current = await selection.mode(ctx)
  const allowed = modes.get(current)?.effects ?? []
  if (modes.get(mode)?.effects.every(effect => allowed.includes(effect)) === false)
    throw svcError('FORBIDDEN', `the mode "${mode}" allows more than the mode of the server`, {
      details: { field: 'mode', value: mode, mode: current, required_scope: 'admin' },
    })
}

function replyRoutes(parts: ChatRouteOptions): Record<string, Route> {
  const { chat } = parts
  return {
    chat: {
      method: 'POST',
      path: '/api/v1/chat',
      summary: 'Send a message and get the whole reply',
      scope: 'chat',
      body: chatBody,
      responses: ok('The reply.', chatReply),
      bodyLimit: parts.chatBodyLimit,
      async handle({ body }, ctx) {
        const turn = turnOf(body as unknown as ChatBody)
        if (turn.mode !== undefined) await checkMode(turn, parts, ctx)
        return { body: replyOf(await chat.reply(turn, ctx)) }
      },
    },
    chat_answer: {
      method: 'POST',
      path: '/api/v1/chat/answer',
      summary: 'Allow or deny a tool call of an interactive stream',
      scope: 'chat',
      body: answerBody,
      responses: ok('The turn continues with the answer.', object({ success: BOOLEAN })),
      async handle({ body }, ctx) {
        await chat.answer(answerOf(body as unknown as AnswerBody), ctx)
        return { body: { success: true } }
      },
    },
  }
}

async function* after<T>(check: Promise<void>, begin: () => AsyncIterable<T>): AsyncGenerator<T, void> {
  await check
  yield* begin()
}

const streamRoutes = (parts: ChatRouteOptions): Record<string, Route> => ({
  chat_stream: {
    method: 'POST',
    path: '/api/v1/chat/stream',
    summary: 'Send a message and stream the reply',
    scope: 'chat',
    body: streamBody,
    responses: stream,
    streams: 'text/event-stream',
    bodyLimit: parts.chatBodyLimit,
    stream({ body }, ctx) {
      const { detach: isDetached = false } = body as { readonly detach?: boolean }
      const turn = turnOf(body as unknown as ChatBody)
      const begin = () => framesOf(parts.turnStreams.begin(turn, { detach: isDetached }, ctx), 0, parts.http, ctx)
      // a second generator would cost time for each token
      return turn.mode === undefined ? begin() : after(checkMode(turn, parts, ctx), begin)
    },
  },
  chat_resume: {
    method: 'GET',
    path: '/api/v1/chat/stream/:turn_id',
    summary: 'Continue the stream of a turn after a lost connection',
    description:
      'Any worker sends the events after Last-Event-ID, and then all further events. svc keeps a turn for chat.resume_s after its reader has disconnected, and after its end. Then the server returns 404. If its worker exits, the turn is lost, unless it waits for a permission: then the answer continues it.',
    scope: 'chat',
    query: resumeQuery,
    responses: { '200': { ...stream['200'], description: 'The events, as in POST /api/v1/chat/stream.' } },
    streams: 'text/event-stream',
    stream({ params, query, headers }, ctx) {
      const after = afterOf(headers, query.after)
      return framesOf(parts.turnStreams.resume(params.turn_id!, after, ctx), after, parts.http, ctx)
    },
  },
  chat_cancel: {
    method: 'POST',
    path: '/api/v1/chat/stream/:turn_id/cancel',
    summary: 'Cancel a turn that is streamed',
    description: 'The stream ends with the status cancelled. svc stores the text so far. A turn that has ended does not change.',
    scope: 'chat',
    responses: ok('The turn is cancelled.', object({ success: BOOLEAN })),
    async handle({ params }, ctx) {
      await parts.turnStreams.cancel(params.turn_id!, ctx)
      return { body: { success: true } }
    },
  },
})
