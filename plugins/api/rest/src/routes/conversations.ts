import type { Chat, Conversations, Route } from '@svc/core/contracts'
import { type ChatBody, turnOf, INTEGER, list, nullable, object, ok, STRING, text, TIME, words } from '@svc/api-types'
import { conversationWire, messageWire, summaryWire } from '../records.ts'

const PATH = '/api/v1/conversations'
const PAGE = 50

const summary = { conversation_id: STRING, created_at: TIME, updated_at: TIME, message_count: INTEGER }
const message = object({ role: words('user', 'assistant'), content: STRING, status: words('failed', 'cancelled') }, [
  'role',
  'content',
])
const turnBody = object({ conversation_id: text(), message: text(), provider: text(), model: text() }, ['message'])
const pageQuery = object(
  {
    limit: { type: 'integer', minimum: 1, maximum: 200, description: `Maximum entries of the page; default ${PAGE}.` },
    cursor: text('The next_cursor of the previous page.'),
  },
  []
)

interface ConversationOptions {
  readonly chat: Chat
  readonly conversations: Conversations
}

/** Routes for conversations. They share the store with `/chat`. */
export function createConversationRoutes(parts: ConversationOptions): Record<string, Route> {
  return {
    conversation_turn: turnRoute(parts),
    conversation_list: listRoute(parts),
    conversation: readRoute(parts),
    conversation_delete: deleteRoute(parts),
  }
}

const turnRoute = ({ chat, conversations }: ConversationOptions): Route => ({
  method: 'POST',
  path: PATH,
  summary: 'Start a conversation or continue it',
  scope: 'chat',
  body: turnBody,
  responses: ok(
    'The reply and all messages of the conversation.',
    object({ conversation_id: STRING, response: STRING, messages: list(message) })
  ),
  async handle({ body }, ctx) {
    const { message, conversationId, provider, model } = turnOf(body as unknown as ChatBody)
    const reply = await chat.reply(
      {
        message,
        ...(conversationId === undefined ? {} : { conversationId }),
        ...(provider === undefined ? {} : { provider }),
        ...(model === undefined ? {} : { model }),
      },
      ctx
    )
    const { messages } = await conversations.get(reply.conversationId, ctx)
    return { body: { conversation_id: reply.conversationId, response: reply.response, messages: messages.map(messageWire) } }
  },
})

const listRoute = ({ conversations }: ConversationOptions): Route => ({
  method: 'GET',
  path: PATH,
  summary: 'List conversations, newest first',
  scope: 'chat',
  query: pageQuery,
  responses: ok('A page of conversations.', object({ conversations: list(object(summary)), next_cursor: nullable('string') })),
  async handle({ query: { limit, cursor } }, ctx) {
    const page = await conversations.list(
      { limit: limit === undefined ? PAGE : Number(limit), ...(cursor === undefined ? {} : { cursor }) },
      ctx
    )
    return { body: { conversations: page.conversations.map(summaryWire), next_cursor: page.next ?? null } }
  },
})

const readRoute = ({ conversations }: ConversationOptions): Route => ({
  method: 'GET',
  path: `${PATH}/:id`,
  summary: 'Read a conversation',
  scope: 'chat',
  responses: ok('The conversation.', object({ ...summary, messages: list(message) })),
  handle: async ({ params }, ctx) => ({ body: conversationWire(await conversations.get(params.id!, ctx)) }),
})

const deleteRoute = ({ conversations }: ConversationOptions): Route => ({
  method: 'DELETE',
  path: `${PATH}/:id`,
  summary: 'Delete a conversation',
  scope: 'chat',
  responses: { '204': { description: 'The conversation is deleted.' } },
  async handle({ params }, ctx) {
    await conversations.delete(params.id!, ctx)
    return { status: 204 }
  },
})
