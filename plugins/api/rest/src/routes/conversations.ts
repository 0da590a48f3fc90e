import { type JsonSchema, svcError } from '@svc/core'
import type { Chat, Conversations, NewConversation, Route, TurnDetail } from '@svc/core/contracts'
import {
  type ChatBody,
  etag,
  INTEGER,
  list,
  messageRecord,
  nullable,
  object,
  OBJECT,
  ok,
  STRING,
  text,
  TIME,
  turnOf,
  words,
} from '@svc/api-types'
import { conversationDetailWire, conversationWire, matchWire, messageWire, summaryWire } from '../records.ts'

const PATH = '/api/v1/conversations'
const PAGE = 50
const [TURN_PAGE, MOST_TURNS] = [100, 1000]

const summary = { conversation_id: STRING, created_at: TIME, updated_at: TIME, message_count: INTEGER }
const message = object({ role: words('user', 'assistant'), content: STRING, status: words('failed', 'cancelled') }, [
  'role',
  'content',
])
const usage = object({ input_tokens: INTEGER, output_tokens: INTEGER })
const details = {
  owner: STRING,
  title: { ...(nullable('string') as object), description: 'The given title, or the first words of the first turn.' },
  labels: list(STRING),
  provider: nullable('string'),
  model: { ...(nullable('string') as object), description: 'The model that answered last.' },
  usage: { oneOf: [usage, { type: 'null' }], description: 'Tokens of all turns that have recorded them.' },
  forked_from: { oneOf: [object({ conversation_id: STRING, message_id: nullable('string') }), { type: 'null' }] },
} as const satisfies Record<string, JsonSchema>
/** A conversation without its messages. */
export const CONVERSATION_RECORD: JsonSchema = { ...(object({ ...summary, ...details }) as object), title: 'ConversationRecord' }
const match = object({ message_id: nullable('string'), text: STRING, marks: list(list(INTEGER)) })
const messageDetail = object(
  {
    id: STRING,
    role: words('user', 'assistant', 'tool', 'system'),
    status: words('failed', 'cancelled'),
    at: TIME,
    provider: STRING,
    model: STRING,
    usage,
    parts: list(OBJECT),
  },
  ['id', 'role', 'parts']
)
const turnBody = object(
  {
    conversation_id: text(),
    message: text(),
    provider: text(),
    model: text(),
    title: text('The title of a new conversation. Default: the first words of the message.'),
    labels: { type: 'array', items: STRING, maxItems: 1000, description: 'Labels of a new conversation, at most 32.' },
  },
  ['message']
)
const detail: JsonSchema = { ...(words('full') as object), description: 'Returns all that is known.' }
const label = text('Lists only conversations with this label. A page can then be shorter.')
const pageQuery = object(
  {
    limit: { type: 'integer', minimum: 1, maximum: 200, description: `Maximum entries of the page; default ${PAGE}.` },
    cursor: text('The next_cursor of the previous page.'),
    q: text('A full-text search, best match first: words, "phrases", begin*, -without.'),
    label,
    detail,
  },
  []
)
const readQuery = object(
  {
    detail,
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: MOST_TURNS,
      description: `With detail=full: maximum turns of the page; default ${TURN_PAGE}.`,
    },
    cursor: text('With detail=full: the next_cursor of the previous page.'),
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
    const { title, labels } = body as unknown as NewConversation
    const names = { ...(title === undefined ? {} : { title }), ...(labels === undefined ? {} : { labels }) }
    const reply = await chat.reply(
      {
        message,
        ...(Object.keys(names).length === 0 ? {} : { newConversation: names }),
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
  summary: 'List conversations, newest first, or search them',
  description:
    'With `q` or `detail=full`, each entry has all that is known of the conversation. With `q`, it also has its matches; the same ' +
    'conversation can be found again on a later page.',
  scope: 'chat',
  query: pageQuery,
  responses: ok(
    'A page of conversations.',
    object({
      conversations: list(object({ ...summary, ...details, matches: list(match) }, Object.keys(summary))),
      next_cursor: nullable('string'),
    })
  ),
  async handle({ query: { limit, cursor, q, label: only, detail: how } }, ctx) {
    const page = {
      limit: limit === undefined ? PAGE : Number(limit),
      ...(cursor === undefined ? {} : { cursor }),
      ...(only === undefined ? {} : { label: only }),
    }
    if (q !== undefined) {
      const { found, next } = await conversations.search({ ...page, q }, ctx)
      const shown = found.map(({ conversation, matches }) => ({
        ...conversationDetailWire(conversation),
        matches: matches.map(matchWire),
      }))
      return { body: { conversations: shown, next_cursor: next ?? null } }
    }
    const { conversations: listed, next } = await conversations.list(page, ctx)
    return {
      body: { conversations: listed.map(how === 'full' ? conversationDetailWire : summaryWire), next_cursor: next ?? null },
    }
  },
})

const readRoute = ({ conversations }: ConversationOptions): Route => ({
  method: 'GET',
  path: `${PATH}/:id`,
  summary: 'Read a conversation',
  description: 'With `detail=full`, it has the rounds of tools, and for each answer the model and its tokens, page by page.',
  scope: 'chat',
  query: readQuery,
  responses: ok(
    'The conversation. The ETag is its version, for If-Match.',
    object({ ...summary, ...details, messages: list({ anyOf: [message, messageDetail] }), next_cursor: nullable('string') }, [
      ...Object.keys(summary),
      'messages',
    ])
  ),
  async handle({ params, query: { detail: how, limit, cursor } }, ctx) {
    if (how === undefined) {
      const given = limit === undefined ? cursor : limit
      if (given !== undefined) throw needsDetail(limit === undefined ? 'cursor' : 'limit')
      const found = await conversations.get(params.id!, ctx)
      return { headers: etag(String(found.version)), body: conversationWire(found) }
    }
    const from = cursor === undefined ? 1 : /^[1-9]\d{0,8}$/.test(cursor) ? Number(cursor) : 0
    const page = { from, limit: limit === undefined ? TURN_PAGE : Number(limit) }
    const { conversation, turns, next } = await conversations.turns(params.id!, page, ctx)
    const messages = turns.flatMap(detailedMessages)
    const body = { ...conversationDetailWire(conversation), messages, next_cursor: next === undefined ? null : String(next) }
    return { headers: etag(String(conversation.version)), body }
  },
})

const detailedMessages = ({ at, messages }: TurnDetail) =>
  messages.map(one => ({ ...messageRecord(one), ...(at === undefined ? {} : { at }) }))

const needsDetail = (field: string) =>
  svcError('INVALID_VALUE', `${field} needs detail=full`, { details: { field, reason: 'needs detail=full' } })

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
