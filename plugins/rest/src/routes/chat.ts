import type { Chat, Http, Route } from '@svc/core/contracts'
import { framesOf } from '../frames.ts'
import { BOOLEAN, INTEGER, list, NUMBER, OBJECT, object, ok, STRING, text } from '../schemas.ts'
import { type ChatBody, replyWire, turnOf } from '../wire.ts'

const chatBody = object(
  {
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
  },
  ['message']
)

const tokens = object({ input: INTEGER, output: INTEGER, total: INTEGER })

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
  tokens_used: tokens,
  duration_ms: INTEGER,
  tools_used: list(toolUse),
})

const stream = {
  '200': {
    description: 'Events start, token, tool_call, tool_result, error, end; start first, end last. The data repeats the type.',
    schema: STRING,
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
      handle: async ({ body }, use) => ({ body: replyWire(await chat.reply(turnOf(body as unknown as ChatBody), use)) }),
    },
    chat_stream: {
      method: 'POST',
      path: '/api/v1/chat/stream',
      summary: 'Say something and get the reply as it comes',
      scope: 'chat',
      body: chatBody,
      responses: stream,
      streams: 'text/event-stream',
      stream: ({ body }, use) => framesOf(chat, http, turnOf(body as unknown as ChatBody), use),
    },
  }
}
