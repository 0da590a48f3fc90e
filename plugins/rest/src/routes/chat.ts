import type { Chat, Http, Route } from '@svc/core/contracts'
import { type ChatBody, replyOf, turnOf } from '@svc/wire'
import { CHAT_EVENT, tokensUsed } from '../chat-events.ts'
import { framesOf } from '../frames.ts'
import { BOOLEAN, INTEGER, list, NUMBER, OBJECT, object, ok, STRING, text } from '../schemas.ts'

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
      'Server-sent events: lines id, event, data; the event is named by the type in its data, whose schema this is. First start, last end; between them token, tool_call and tool_result in the order in which they happen, and error just before an end with status failed. Comments are heartbeats.',
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
      handle: async ({ body }, use) => ({ body: replyOf(await chat.reply(turnOf(body as unknown as ChatBody), use)) }),
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
