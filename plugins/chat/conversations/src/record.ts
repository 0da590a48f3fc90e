import type {
  ChatMessage,
  ConversationSummary,
  Json,
  MessageDetail,
  NewConversation,
  Space,
  Store,
  StoredMessage,
  TextPart,
  TurnDetail,
  TurnStep,
  Usage,
} from '@svc/core/contracts'
import type { CallContext } from '@svc/core'
import { type Migration, timelyId } from '@svc/storage-kit'
import { conversationUnknown, invalid } from './errors.ts'

/** The stored record of a conversation. Its turns are entries of the log. */
export interface ConversationRecord {
  readonly owner: string
  readonly created: string
  readonly updated: string
  /** Messages as callers see them. */
  readonly count: number
  readonly turns: number
  readonly bytes: number
  readonly title?: string
  /** Whether the title was given. One that was made is a part of the first message. */
  readonly named?: true
  readonly labels?: readonly string[]
  readonly provider?: string
  readonly model?: string
  /** Tokens of the turns that have recorded them. */
  readonly input?: number
  readonly output?: number
  readonly forked?: { readonly from: string; readonly message?: string }
}

/** A turn as a log entry. Version 1 of the space stored only the messages. */
export interface TurnEntry {
  readonly at?: string
  readonly messages: readonly StoredMessage[]
  readonly steps?: readonly TurnStep[]
}

/** A new id. */
export const newId = () => `conv_${timelyId().replaceAll('-', '')}`
/** Whether an id has the form of a conversation id. */
export const isMade = (id: string) => /^conv_[0-9a-f]{32}$/.test(id)

export const COLLECTION = 'conversations'
export const LOG = 'conversation_turns'
/** The searched texts: one record a turn, and one for the title. Written after the turns, from `CHANGES`. */
export const TEXTS = 'conversation_texts'
/** Marks of conversations whose texts are out of date. */
export const CHANGES = 'conversation_changes'

/** The space; the full-text index only with a store that has them. */
export const spaceOf = (withText: boolean): Space => ({
  name: 'conversations',
  version: 2,
  collections: {
    [COLLECTION]: { indexes: { by_owner: ['owner', 'updated'], by_updated: ['updated'] } },
    [CHANGES]: {},
    [TEXTS]: withText ? { text: { content: { fields: ['title', 'user', 'assistant'], filters: ['owner'] } } } : {},
  },
  logs: [LOG],
})

const MIGRATION_PAGE = 1000

/** Version 1 had no texts: marks all conversations. Records and turns of version 1 are read as they are. */
export const markAll: Migration = async ({ store, fence, ctx }) => {
  for (let cursor: string | undefined; ; ) {
    const page = await store.range(COLLECTION, { limit: MIGRATION_PAGE, ...(cursor === undefined ? {} : { cursor }) }, ctx)
    const ops = page.records.map(({ key }) => markOp(wholeMark(key)))
    if (ops.length > 0) await store.batch(ops, { fence }, ctx)
    cursor = page.next
    if (cursor === undefined) return undefined
  }
}

/**
 * The key of a mark, which says what texts of a conversation are out of date: those of one turn, of its title, or all. Each
 * change has a key of its own, so that the deletion of a mark never deletes a later one.
 */
export type Mark = string
export const turnMark = (id: string, turn: number): Mark => `${id}/t${turn}`
export const titleMark = (id: string): Mark => `${id}/n${crypto.randomUUID()}`
export const wholeMark = (id: string): Mark => `${id}/o${crypto.randomUUID()}`
export const isWholeMark = (mark: Mark) => mark[mark.indexOf('/') + 1] === 'o'
/** The turn of a mark. */
export function turnOf(mark: Mark): number | undefined {
  const what = mark.slice(mark.indexOf('/') + 1)
  return what.startsWith('t') ? Number(what.slice(1)) : undefined
}
/** Puts a mark, in the batch with its change. */
export const markOp = (key: Mark) => ({ op: 'put', collection: CHANGES, key, value: {} }) as const

export const asJson = (value: object): Json => value as unknown as Json
export const recordOf = (value: Json): ConversationRecord => value as unknown as ConversationRecord

export const entryOf = (value: Json): TurnEntry =>
  Array.isArray(value) ? { messages: value as unknown as StoredMessage[] } : (value as unknown as TurnEntry)

export function summaryOf(id: string, record: ConversationRecord, version: number): ConversationSummary {
  const { title, labels = [], provider, model, input, output, forked } = record
  return {
    id,
    owner: record.owner,
    version,
    createdAt: record.created,
    updatedAt: record.updated,
    messageCount: record.count,
    ...(title === undefined ? {} : { title }),
    ...(labels.length === 0 ? {} : { labels }),
    ...(provider === undefined || model === undefined ? {} : { provider, model }),
    ...(input === undefined || output === undefined ? {} : { tokens: { input, output } }),
    ...(forked && {
      forkedFrom: { conversationId: forked.from, ...(forked.message === undefined ? {} : { messageId: forked.message }) },
    }),
  }
}

export const textOf = (message: StoredMessage) =>
  message.parts
    .filter((part): part is TextPart => part.type === 'text')
    .map(part => part.text)
    .join('')

/** A turn as callers see it: the message of the user, and the text of the assistant from all rounds in one message. */
export function shownTurn(turn: readonly StoredMessage[]): ChatMessage[] {
  const user = turn
    .filter(message => message.role === 'user')
    .map(message => ({ role: 'user' as const, content: textOf(message) }))
  const assistant = turn.filter(message => message.role === 'assistant')
  if (assistant.length === 0) return user
  const status = assistant.find(message => message.status)?.status
  return [...user, { role: 'assistant', content: assistant.map(textOf).join(''), ...(status ? { status } : {}) }]
}

export const messageId = (turn: number, index: number) => `${turn}-${index}`

/** A turn with the rounds of its tools, and the tokens of each answer. */
export function detailOf(number: number, { at, messages, steps = [] }: TurnEntry): TurnDetail {
  const detail = ({ role, parts, status }: StoredMessage, index: number): MessageDetail => ({
    id: messageId(number, index),
    role,
    parts: parts.map(withoutData),
    ...(status === undefined ? {} : { status }),
    ...costOf(steps.filter(step => step.message === index)),
  })
  return { number, ...(at === undefined ? {} : { at }), messages: messages.map(detail) }
}

/** Only the provider that made it can read opaque data. */
function withoutData(part: StoredMessage['parts'][number]): StoredMessage['parts'][number] {
  if (!('providerData' in part)) return part
  const { providerData: _data, ...rest } = part
  return rest
}

function costOf(steps: readonly TurnStep[]): Pick<MessageDetail, 'provider' | 'model' | 'usage'> {
  const last = steps.at(-1)
  if (!last) return {}
  const sum = (name: keyof Usage) => steps.reduce((total, { usage }) => total + (usage[name] ?? 0), 0)
  const parts = (['cached', 'cacheWrite', 'reasoning'] as const).filter(name => sum(name) > 0).map(name => [name, sum(name)])
  const usage: Usage = { input: sum('input'), output: sum('output'), ...Object.fromEntries(parts) }
  return { provider: last.provider, model: last.model, usage }
}

/** Number of messages that `shownTurn` returns for a turn. */
function countShown(turn: readonly StoredMessage[]): number {
  const users = turn.filter(message => message.role === 'user').length
  return turn.some(message => message.role === 'assistant') ? users + 1 : users
}

/** The record of a conversation without turns. */
export const emptyRecord = (owner: string, now: string, { title, labels }: NewConversation = {}): ConversationRecord => ({
  owner,
  created: now,
  updated: now,
  count: 0,
  turns: 0,
  bytes: 0,
  ...(title === undefined ? {} : { title, named: true }),
  ...(labels === undefined || labels.length === 0 ? {} : { labels }),
})

/** The record after one more turn. */
export function grown(base: ConversationRecord, { messages, steps = [] }: TurnEntry, now: string): ConversationRecord {
  const last = steps.at(-1)
  const spent = (of: 'input' | 'output') => steps.reduce((sum, { usage }) => sum + usage[of], base[of] ?? 0)
  const title = base.title ?? madeTitle(messages)
  return {
    ...base,
    updated: now > base.updated ? now : base.updated,
    count: base.count + countShown(messages),
    turns: base.turns + 1,
    bytes: base.bytes + sizeOf(messages),
    ...(title === undefined ? {} : { title }),
    ...(last && { provider: last.provider, model: last.model, input: spent('input'), output: spent('output') }),
  }
}

/** The approximate UTF-8 size of a turn's text. It counts the text, not the stored form. */
function sizeOf(turn: readonly StoredMessage[]): number {
  let sum = 0
  for (const { parts } of turn)
    for (const part of parts) sum += part.type === 'text' ? Buffer.byteLength(part.text) : JSON.stringify(part).length
  return sum
}

const [MADE_TITLE, LONGEST_TITLE, LONGEST_LABEL, MOST_LABELS] = [60, 200, 64, 32]
/** Control characters, line separators, and characters that change the direction of what follows. */
const CONTROL = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u
const BLANK = /[\p{Cc}\s\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu

/** The first words of the first message of the user. */
function madeTitle(messages: readonly StoredMessage[]): string | undefined {
  const said = messages.find(message => message.role === 'user')
  const text = said && textOf(said).slice(0, 1000).toWellFormed().replaceAll(BLANK, ' ').trim()
  if (!text) return undefined
  if (text.length <= MADE_TITLE) return text
  const characters = Array.from(text)
  if (characters.length <= MADE_TITLE) return text
  const cut = characters.slice(0, MADE_TITLE).join('')
  const space = cut.lastIndexOf(' ')
  return `${cut.slice(0, space > MADE_TITLE / 2 ? space : undefined)}…`
}

/** Checks title and labels, and sorts the labels. Throws INVALID_VALUE. */
export function checkedNames({ title, labels }: NewConversation): NewConversation {
  return {
    ...(title === undefined ? {} : { title: checkedName('title', title, LONGEST_TITLE) }),
    ...(labels === undefined ? {} : { labels: checkedLabels(labels) }),
  }
}

/** A name without control characters. Throws INVALID_VALUE. */
export function checkedName(field: string, name: string, longest: number): string {
  const trimmed = name.slice(0, longest * 2 + 1).trim()
  if (trimmed === '') throw invalid(field, 'must not be blank')
  if (name.length > longest * 2 || Array.from(trimmed).length > longest)
    throw invalid(field, `must have at most ${longest} characters`)
  if (CONTROL.test(trimmed) || !trimmed.isWellFormed()) throw invalid(field, 'must not contain control characters')
  return trimmed
}

function checkedLabels(labels: readonly string[]): readonly string[] {
  if (labels.length > MOST_LABELS) throw invalid('labels', `must have at most ${MOST_LABELS} entries, has ${labels.length}`)
  const checked = labels.map(label => {
    const name = checkedName('labels', label, LONGEST_LABEL)
    if (name.includes(',')) throw invalid('labels', 'must not contain a comma')
    return name
  })
  return [...new Set(checked)].sort()
}

/** Whether this principal can access all conversations. */
export const seesAll = ({ principal }: CallContext) => principal.scopes.includes('admin') || principal.scopes.includes('*')
/** Whether this principal can access the data of `owner`. */
export const maySee = (owner: string, ctx: CallContext) => ctx.principal.id === owner || seesAll(ctx)

/** The record of a conversation that this principal can access. Throws CONVERSATION_UNKNOWN for any other. */
export async function readRecord(
  store: Store,
  id: string,
  ctx: CallContext
): Promise<{ version: number; value: ConversationRecord }> {
  const found = await store.get(COLLECTION, id, ctx)
  const value = found && recordOf(found.value)
  if (!found || !value || !maySee(value.owner, ctx)) throw conversationUnknown(id)
  return { version: found.version, value }
}

const PAGE = 1000

/** Yields the turns of a conversation from number `from` to `to`, page by page. */
export async function* readTurns(
  store: Store,
  id: string,
  { from = 1, to }: { readonly from?: number; readonly to: number },
  ctx: CallContext
): AsyncGenerator<{ readonly number: number; readonly entry: TurnEntry }> {
  for (let next = from; next <= to; ) {
    const entries = await store.read(LOG, id, { from: next, limit: Math.min(PAGE, to - next + 1) }, ctx)
    if (entries.length === 0) return
    for (const { seq, value } of entries) yield { number: seq, entry: entryOf(value) }
    next += entries.length
  }
}
