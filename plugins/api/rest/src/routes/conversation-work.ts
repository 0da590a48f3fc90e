import type { Chat, ConversationFilter, Conversations, ExportFormat, NewConversation, Route } from '@svc/core/contracts'
import type { JsonSchema } from '@svc/core'
import { etag, ifMatchOf, list, object, ok, STRING, text, words } from '@svc/api-types'
import { conversationDetailWire } from '../records.ts'
import { CONVERSATION_RECORD } from './conversations.ts'

const PATH = '/api/v1/conversations'
/** Of an import. With its copies in the store it stays below the limit of a batch. */
const IMPORT_LIMIT = 16 * 1024 * 1024

const closed = (properties: { readonly [name: string]: JsonSchema }, required: readonly string[] = []): JsonSchema => ({
  ...(object(properties, required) as object),
  additionalProperties: false,
})
const labels: JsonSchema = {
  type: 'array',
  items: STRING,
  maxItems: 1000,
  description: 'At most 32 labels of at most 64 characters.',
}
const names = { title: text('At most 200 characters.'), labels }
const formatOf = (...formats: readonly ExportFormat[]): JsonSchema => ({
  ...(words(...formats) as object),
  description: 'The format; default jsonl.',
})

interface ConversationOptions {
  readonly chat: Chat
  readonly conversations: Conversations
}

/** Routes that work with whole conversations: fork, export, import, delete many, hand over. */
export const createConversationWorkRoutes = (parts: ConversationOptions): Record<string, Route> => ({
  conversation_change: changeRoute(parts),
  conversation_fork: forkRoute(parts),
  conversation_export: exportRoute(parts),
  conversation_import: importRoute(parts),
  conversation_delete_many: deleteManyRoute(parts),
  conversation_hand_over: handOverRoute(parts),
})

const changeRoute = ({ conversations }: ConversationOptions): Route => ({
  method: 'PATCH',
  path: `${PATH}/:id`,
  summary: 'Rename a conversation, or set its labels',
  description: 'With If-Match, only if the conversation has the version of this ETag. A turn is a new version, too.',
  scope: 'chat',
  conditional: 'optional',
  body: closed({ ...names, labels: { ...(labels as object), description: 'Replaces all labels. At most 32.' } }),
  responses: ok('The conversation without its messages.', CONVERSATION_RECORD),
  async handle({ params, headers, body }, ctx) {
    const version = ifMatchOf({ headers })
    const only = version === undefined || version === '*' ? {} : { ifVersion: versionOf(version) }
    const changed = await conversations.update(params.id!, { ...(body as unknown as NewConversation), ...only }, ctx)
    return { headers: etag(String(changed.version)), body: conversationDetailWire(changed) }
  },
})

/** An ETag of another form names no version of a conversation. */
const versionOf = (given: string) => (/^[1-9]\d{0,14}$/.test(given) ? Number(given) : 0)

const forkRoute = ({ chat, conversations }: ConversationOptions): Route => ({
  method: 'POST',
  path: `${PATH}/:id/fork`,
  summary: 'Copy a conversation up to a message, and continue the copy',
  description:
    'If `message_id` names a message of the user, the copy ends before this message; otherwise the copy ends with the turn of ' +
    'the message. With `message`, svc then starts a turn with this text in the copy. To edit a message, name it in `message_id`.',
  scope: 'chat',
  body: closed({
    message_id: text('An id of `GET …?detail=full`. Absent: the whole conversation.'),
    ...names,
    message: text('A message of the user. svc starts a turn with it in the copy.'),
    provider: text('The provider of that turn.'),
    model: text('The model of that turn.'),
  }),
  responses: {
    '201': {
      description: 'The copy. `text` is the text of a message of the user at which it ends, `response` the reply of the turn.',
      schema: object({ conversation: CONVERSATION_RECORD, text: STRING, response: STRING }, ['conversation']),
    },
  },
  async handle({ params, body }, ctx) {
    const { message_id: messageId, title, labels: given, message, provider, model } = body as unknown as ForkBody
    const { conversation, text: edited } = await conversations.fork(
      params.id!,
      {
        ...(messageId === undefined ? {} : { messageId }),
        ...(title === undefined ? {} : { title }),
        ...(given === undefined ? {} : { labels: given }),
      },
      ctx
    )
    const copy = { conversation: conversationDetailWire(conversation), ...(edited === undefined ? {} : { text: edited }) }
    if (message === undefined) return { status: 201, body: copy }
    const { id: conversationId } = conversation
    const asked = { ...(provider === undefined ? {} : { provider }), ...(model === undefined ? {} : { model }) }
    try {
      const { response } = await chat.reply({ message, conversationId, ...asked }, ctx)
      const { conversation: now } = await conversations.turns(conversationId, { from: 1, limit: 1 }, ctx)
      return { status: 201, body: { ...copy, conversation: conversationDetailWire(now), response } }
    } catch (error) {
      // the caller does not know the id of the copy
      await conversations.delete(conversationId, ctx).catch(() => {})
      throw error
    }
  },
})

interface ForkBody extends NewConversation {
  readonly message_id?: string
  readonly message?: string
  readonly provider?: string
  readonly model?: string
}

const MEDIA: Readonly<Record<ExportFormat, { readonly type: string; readonly ending: string }>> = {
  jsonl: { type: 'application/x-ndjson; charset=utf-8', ending: 'jsonl' },
  chat_completions: { type: 'application/x-ndjson; charset=utf-8', ending: 'chat.jsonl' },
  markdown: { type: 'text/markdown; charset=utf-8', ending: 'md' },
}

const exportRoute = ({ conversations }: ConversationOptions): Route => ({
  method: 'GET',
  path: `${PATH}/:id/export`,
  summary: 'Export a conversation',
  scope: 'chat',
  query: object({ format: formatOf('jsonl', 'chat_completions', 'markdown') }, []),
  streams: 'application/x-ndjson',
  responses: {
    '200': { description: 'The conversation as a file.', contentType: ['application/x-ndjson', 'text/markdown'], schema: STRING },
  },
  async *stream({ params, query }, ctx) {
    const id = params.id!
    const format = (query.format ?? 'jsonl') as ExportFormat
    const pieces = conversations.export(id, format, ctx)[Symbol.asyncIterator]()
    try {
      // an unknown conversation is an ordinary error, so the head comes after the first piece
      let piece = await pieces.next()
      const { type, ending } = MEDIA[format]
      yield { headers: { 'content-type': type, 'content-disposition': `attachment; filename="${id}.${ending}"` } }
      for (; !piece.done; piece = await pieces.next()) yield piece.value
    } finally {
      await pieces.return?.()
    }
  },
})

const importRoute = ({ conversations }: ConversationOptions): Route => ({
  method: 'POST',
  path: `${PATH}/import`,
  summary: 'Import conversations, all or none',
  description: 'They get new ids and belong to the caller. An invalid line is refused with its number in `details.line`.',
  scope: 'chat',
  bodyLimit: IMPORT_LIMIT,
  body: closed(
    { format: formatOf('jsonl', 'chat_completions'), content: { type: 'string', description: 'The text of an export.' }, labels },
    ['content']
  ),
  responses: { '201': { description: 'The new conversations.', schema: object({ conversations: list(CONVERSATION_RECORD) }) } },
  async handle({ body }, ctx) {
    const { format = 'jsonl', content, labels: more } = body as unknown as ImportBody
    const made = await conversations.import({ format, content, ...(more === undefined ? {} : { labels: more }) }, ctx)
    return { status: 201, body: { conversations: made.map(conversationDetailWire) } }
  },
})

interface ImportBody {
  readonly format?: ExportFormat
  readonly content: string
  readonly labels?: readonly string[]
}

const deleteManyRoute = ({ conversations }: ConversationOptions): Route => ({
  method: 'POST',
  path: `${PATH}/delete`,
  summary: 'Delete the conversations that meet all conditions, in a background job',
  scope: 'chat',
  body: closed({
    label: text('Only conversations with this label.'),
    before: text('Only conversations whose last turn is older than this time.'),
    q: text('Only conversations that this search finds.'),
    owner: text('Only conversations of this principal; * for all. Default: the caller. Others need the scope admin.'),
  }),
  responses: { '202': { description: 'The id of the job.', schema: object({ job_id: STRING }) } },
  async handle({ body }, ctx) {
    const { job } = await conversations.deleteMany(body as unknown as ConversationFilter, ctx)
    return { status: 202, body: { job_id: job } }
  },
})

const handOverRoute = ({ conversations }: ConversationOptions): Route => ({
  method: 'POST',
  path: `${PATH}/:id/hand-over`,
  summary: 'Give a conversation to another principal',
  scope: 'admin',
  body: closed({ owner: text('The id of the principal.') }, ['owner']),
  responses: ok('The conversation without its messages.', CONVERSATION_RECORD),
  async handle({ params, body }, ctx) {
    const { owner } = body as unknown as { readonly owner: string }
    return { body: conversationDetailWire(await conversations.handOver(params.id!, owner, ctx)) }
  },
})
