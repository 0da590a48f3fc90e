import { type AnswerBody, answerOf, type ChatBody, type ChatEvent, replyOf, turnOf } from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import type { Chat, Http, Route } from '@svc/core/contracts'
import { framesOf } from '../frames.ts'
import { BOOLEAN, INTEGER, list, nullable, NUMBER, OBJECT, object, ok, STRING, text, TIME, words } from '../schemas.ts'

const tokensUsed = object({ input: INTEGER, output: INTEGER, total: INTEGER })

const index: JsonSchema = { type: 'integer', minimum: 0, description: 'Counts the tokens of this stream.' }
const result: JsonSchema = { description: 'What the tool answered: JSON where it has structure, else text.' }

type Fields = Parameters<typeof object>[0]

/** The fields of each event's data, besides its `type`. */
const FIELDS: {
  readonly [K in ChatEvent['type']]: { readonly [F in Exclude<keyof Extract<ChatEvent, { type: K }>, 'type'>]: JsonSchema }
} = {
  start: { request_id: STRING, timestamp: TIME, conversation_id: STRING, provider: STRING, model: STRING },
  token: { content: STRING, index },
  tool_call: { tool: STRING, call_id: STRING, arguments: OBJECT },
  ask: { tool: STRING, call_id: STRING, arguments: OBJECT, question: STRING },
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
  },
}

const MEANINGS: { readonly [K in ChatEvent['type']]: string } = {
  start: 'The turn has begun.',
  token: 'A piece of the reply.',
  tool_call: 'A tool is about to run.',
  ask: 'Only in an interactive turn: whether this call may run. It waits for an answer.',
  tool_result: 'What came of it.',
  error: 'The turn failed after it had begun: an error record.',
  end: 'The turn has ended; provider and model are those that answered.',
}

/** `tool_call` is the schema `ToolCallEvent`. */
const nameOf = (type: string) => `${type.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())}Event`

const eventSchema = (type: ChatEvent['type']): JsonSchema => {
  const fields: Fields = { type: { const: type }, ...FIELDS[type] }
  return { title: nameOf(type), description: MEANINGS[type], ...(object(fields) as object) }
}

/** The data of an event of the chat stream. */
export const CHAT_EVENT: JsonSchema = {
  title: 'ChatEvent',
  oneOf: (Object.keys(FIELDS) as ChatEvent['type'][]).map(eventSchema),
}

const fields = {
  message: text('What is said.'),
  provider: text('Name of a provider.'),
  model: text('A model of the provider.'),
  temperature: { ...(NUMBER as object), minimum: 0, maximum: 1 },
  max_tokens: { ...(INTEGER as object), minimum: 1 },
  conversation_id: text('Continues this conversation; without it a new one is made.'),
  tools: {
    ...(list(text()) as object),
    maxItems: 1_000,
    description: 'Names of tools; absent: those of the profile, else of the mode; empty: none.',
  },
}
const chatBody = object(fields, ['message'])

const interactive = {
  ...(BOOLEAN as object),
  description:
    'Somebody reads along and answers ask events (POST /api/v1/chat/answer). Otherwise a tool call that asks is denied.',
}
const streamBody = object({ ...fields, interactive }, ['message'])

const answerBody = object(
  {
    request_id: text('That of the start event.'),
    call_id: text('That of the ask event.'),
    allow: BOOLEAN,
    reason: { ...(STRING as object), maxLength: 1_000, description: 'Told to the model when it is not allowed.' },
  },
  ['request_id', 'call_id', 'allow']
)

const toolUse = object(
  { tool: STRING, call_id: STRING, arguments: OBJECT, success: BOOLEAN, duration_ms: INTEGER, error: STRING },
  ['tool', 'call_id', 'arguments', 'success', 'duration_ms']
)

const chatReply = object({
  success: BOOLEAN,
  response: STRING,
  provider: STRING,
  model: STRING,
  conversation_id: STRING,
  tokens_used: tokensUsed,
  duration_ms: INTEGER,
  tools_used: list(toolUse),
})

const stream = {
  '200': {
    description:
      'Server-sent events: lines id, event, data; the event is named by the type in its data, whose schema this is. First start, last end; between them token, tool_call, ask and tool_result in the order in which they happen, and error just before an end with status failed. The conversation of a start without conversation_id in the request is there once something is kept in it: where the turn fails or is left before any output, its id is unknown (404). Comments are heartbeats.',
    schema: CHAT_EVENT,
    contentType: 'text/event-stream',
  },
}

/** `POST /api/v1/chat` and its stream. */
export function createChatRoutes({ chat, http }: { chat: Chat; http: Http }): Record<string, Route> {
  return {
    chat: {
      method: 'POST',
      path: '/api/v1/chat',
      summary: 'Say something and get the whole reply',
      scope: 'chat',
      body: chatBody,
      responses: ok('The reply.', chatReply),
      handle: async ({ body }, ctx) => ({ body: replyOf(await chat.reply(turnOf(body as unknown as ChatBody), ctx)) }),
    },
    chat_stream: {
      method: 'POST',
      path: '/api/v1/chat/stream',
      summary: 'Say something and get the reply as it comes',
      scope: 'chat',
      body: streamBody,
      responses: stream,
      streams: 'text/event-stream',
      stream: ({ body }, ctx) => framesOf(chat, http, turnOf(body as unknown as ChatBody), ctx),
    },
    chat_answer: {
      method: 'POST',
      path: '/api/v1/chat/answer',
      summary: 'Say whether a tool call of an interactive stream may run',
      scope: 'chat',
      body: answerBody,
      responses: ok('The turn goes on with it.', object({ success: BOOLEAN })),
      async handle({ body }, ctx) {
        await chat.answer(answerOf(body as unknown as AnswerBody), ctx)
        return { body: { success: true } }
      },
    },
  }
}
