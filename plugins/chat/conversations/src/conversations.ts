import { type CallContext, codeOf, timestamp } from '@svc/core'
import type {
  Conversation,
  ConversationChange,
  ConversationFilter,
  Conversations,
  ConversationSummary,
  Jobs,
  Json,
  NewConversation,
  Store,
  StoreOp,
  StoredMessage,
} from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { openSpace } from '@svc/storage-kit'
import { checkedFilter, DELETE_INTERNAL, DELETE_KIND, type RemoveConversation } from './cleanup.ts'
import {
  adminOnly,
  conversationFull,
  conversationUnknown,
  cursorInvalid,
  invalid,
  jobsUnavailable,
  messageUnknown,
  versionStale,
} from './errors.ts'
import type { Drops, Makers } from './other-workers.ts'
import {
  asJson,
  checkedName,
  checkedNames,
  COLLECTION,
  type ConversationRecord,
  detailOf,
  emptyRecord,
  grown,
  LOG,
  type Mark,
  markAll,
  newId,
  readRecord,
  readTurns,
  recordOf,
  seesAll,
  shownTurn,
  spaceOf,
  summaryOf,
  textOf,
  titleMark,
  type TurnEntry,
  wholeMark,
} from './record.ts'
import type { Texts } from './texts.ts'
import { exported } from './export.ts'
import { type ImportedConversation, readImport } from './import.ts'
import type { TurnLimits, Turns } from './turns.ts'

interface ConversationsOptions {
  readonly store: Store
  readonly turns: Turns
  readonly texts: Texts
  readonly limits: TurnLimits
  readonly drops: Pick<Drops, 'elsewhere'>
  readonly makers: Pick<Makers, 'wait'>
  readonly jobs: Jobs | undefined
  readonly publish: Publish
  readonly deleted: Deleted
}

/** Runs the hook `deleted`. */
type Deleted = (id: string, ctx: CallContext) => Promise<void>

/** Opens the space. Conversations of earlier versions stay as they are, and are marked for the full-text index. */
export const openConversations = (store: Store, withText: boolean, ctx: CallContext) =>
  openSpace(store, spaceOf(withText), { 1: withText ? markAll : async () => [] }, ctx)

/** Keeps conversations in the store. */
export function createConversations(parts: ConversationsOptions): Conversations & Disposable {
  const { store, turns, texts, makers } = parts
  return {
    append: (ticket, messages, steps, ctx) => turns.append(ticket, messages, steps, ctx),
    end: ticket => turns.end(ticket),
    [Symbol.dispose]: () => turns.stop(),

    async begin(options, ctx) {
      const began = performance.now()
      try {
        return await turns.begin(options, ctx)
      } catch (error) {
        const { conversationId: id, waitMs } = options
        if (id === undefined || codeOf(error) !== 'CONVERSATION_UNKNOWN' || !(await makers.wait(id, waitMs, ctx))) throw error
        return turns.begin({ ...options, waitMs: Math.max(0, waitMs - Math.ceil(performance.now() - began)) }, ctx)
      }
    },

    async get(id, ctx): Promise<Conversation> {
      const { value, version } = await readRecord(store, id, ctx)
      const messages: StoredMessage[][] = []
      for await (const { entry } of readTurns(store, id, { to: value.turns }, ctx)) messages.push([...entry.messages])
      return { ...summaryOf(id, value, version), messages: messages.flatMap(shownTurn) }
    },

    async turns(id, { from, limit }, ctx) {
      if (!Number.isSafeInteger(from) || from < 1) throw cursorInvalid()
      const { value, version } = await readRecord(store, id, ctx)
      const to = Math.min(value.turns, from + limit - 1)
      const entries = await Array.fromAsync(readTurns(store, id, { from, to }, ctx))
      const details = entries.map(({ number, entry }) => detailOf(number, entry))
      return { conversation: summaryOf(id, value, version), turns: details, ...(to < value.turns ? { next: to + 1 } : {}) }
    },

    list: (query, ctx) => listPage(store, query, ctx),
    search: (query, ctx) => texts.search(query, ctx),
    update: (id, change, ctx) => updateNames(parts, id, change, ctx),
    fork: (id, options, ctx) => fork(parts, id, options, ctx),

    async *export(id, format, ctx) {
      const { value, version } = await readRecord(store, id, ctx)
      const details = async function* () {
        for await (const { number, entry } of readTurns(store, id, { to: value.turns }, ctx)) yield detailOf(number, entry)
      }
      yield* exported(format, summaryOf(id, value, version), details())
    },

    import: (input, ctx) => importAll(parts, input, ctx),

    async delete(id, ctx) {
      if (!(await removeAnywhere(parts, id, ctx))) throw conversationUnknown(id)
      parts.publish({ type: 'conversation_deleted', subject: subjectOf(id), before: {} }, ctx)
    },

    deleteMany: (filter, ctx) => deleteMany(parts, filter, ctx),
    handOver: (id, owner, ctx) => handOver(parts, id, owner, ctx),
  }
}

const subjectOf = (id: string) => `conversations/${id}`

/** Most conversations that one request looks at for those with a label. */
const MOST_SCANNED = 4000

async function listPage(
  store: Store,
  { limit, cursor, label }: Parameters<Conversations['list']>[0],
  ctx: CallContext
): ReturnType<Conversations['list']> {
  const range = seesAll(ctx) ? { index: 'by_updated' } : { index: 'by_owner', equals: [ctx.principal.id] }
  const conversations: ConversationSummary[] = []
  let next = cursor
  for (let seen = 0; seen < MOST_SCANNED; seen += limit) {
    const more = {
      limit: label === undefined ? limit - conversations.length : limit,
      ...(next === undefined ? {} : { cursor: next }),
    }
    const found = await pageOf(store, { ...range, reverse: true, ...more }, ctx)
    for (const { key, version, value } of found.records) {
      const record = recordOf(value)
      if (label === undefined || record.labels?.includes(label)) conversations.push(summaryOf(key, record, version))
    }
    next = found.next
    if (next === undefined || label === undefined || conversations.length > 0) break
  }
  return { conversations, ...(next === undefined ? {} : { next }) }
}

async function pageOf(store: Store, query: Parameters<Store['range']>[1], ctx: CallContext) {
  try {
    return await store.range(COLLECTION, query, ctx)
  } catch (error) {
    throw codeOf(error) === 'STORE_INVALID' && query.cursor !== undefined ? cursorInvalid() : error
  }
}

type Parts = Pick<ConversationsOptions, 'store' | 'texts'>

/** Writes a changed record, and retries when a turn ends meanwhile. Throws CONVERSATION_UNKNOWN. */
async function changeRecord(
  { store, texts }: Parts,
  id: string,
  mark: Mark,
  change: (before: ConversationRecord, version: number) => ConversationRecord,
  ctx: CallContext
): Promise<{ readonly before: ConversationRecord; readonly after: ConversationRecord; readonly version: number }> {
  for (;;) {
    ctx.signal.throwIfAborted()
    const { value: before, version } = await readRecord(store, id, ctx)
    const after = change(before, version)
    if (after === before) return { before, after, version }
    try {
      const put = { op: 'put', collection: COLLECTION, key: id, value: asJson(after), ifVersion: version } as const
      const { results } = await store.batch([put, ...texts.ops(mark)], {}, ctx)
      texts.changed(mark)
      return { before, after, version: results[0]! }
    } catch (error) {
      if (codeOf(error) !== 'STORE_CONFLICT') throw error
    }
  }
}

async function updateNames(
  parts: ConversationsOptions,
  id: string,
  { ifVersion, ifUntitled = false, ...change }: ConversationChange,
  ctx: CallContext
): Promise<ConversationSummary> {
  const names = checkedNames(change)
  const changed = (record: ConversationRecord, read: number): ConversationRecord => {
    if (ifVersion !== undefined && ifVersion !== read) throw versionStale(id)
    if (ifUntitled && record.named) return record
    return { ...record, ...names, ...(names.title === undefined ? {} : { named: true }) }
  }
  const { before, after, version } = await changeRecord(parts, id, titleMark(id), changed, ctx)
  if (after === before) return summaryOf(id, after, version)
  const subject = subjectOf(id)
  // a title can be words of a message, which belong neither into events nor into the log
  const shown = { labels: after.labels ?? [], ...(before.title === after.title ? {} : { renamed: true }) }
  parts.publish({ type: 'conversation_changed', subject, before: { labels: before.labels ?? [] }, after: shown }, ctx)
  return summaryOf(id, after, version)
}

async function handOver(parts: ConversationsOptions, id: string, owner: string, ctx: CallContext): Promise<ConversationSummary> {
  if (!seesAll(ctx)) throw adminOnly('handing a conversation over')
  const name = checkedName('owner', owner, LONGEST_OWNER)
  if (name === '*') throw invalid('owner', 'must be the id of one principal')
  const { before, after, version } = await changeRecord(parts, id, wholeMark(id), record => ({ ...record, owner: name }), ctx)
  const change = { before: { owner: before.owner }, after: { owner: name } }
  parts.publish({ type: 'conversation_handed_over', subject: subjectOf(id), ...change }, ctx)
  return summaryOf(id, after, version)
}

const LONGEST_OWNER = 200
/** The version of a record that was just made. */
const NEW = 1

async function fork(
  parts: ConversationsOptions,
  id: string,
  { messageId, ...given }: NewConversation & { readonly messageId?: string },
  ctx: CallContext
): ReturnType<Conversations['fork']> {
  const { store, texts } = parts
  const names = checkedNames(given)
  const { value: from } = await readRecord(store, id, ctx)
  const place = messageId === undefined ? { to: from.turns } : await placeOf(store, id, messageId, from.turns, ctx)
  const copy = newId()
  const entries: Json[] = []
  const { title = from.named && from.title, labels = from.labels } = names
  let record: ConversationRecord = emptyRecord(ctx.principal.id, timestamp(), {
    ...(title === undefined ? {} : { title }),
    ...(labels === undefined ? {} : { labels }),
  })
  for await (const { entry } of readTurns(store, id, { to: place.to }, ctx)) {
    record = grown(record, entry, record.updated)
    entries.push(asJson(entry))
  }
  record = { ...record, forked: { from: id, ...(messageId === undefined ? {} : { message: messageId }) } }
  const mark = wholeMark(copy)
  await store.batch([...createOps(copy, record, entries), ...texts.ops(mark)], {}, ctx).catch((error: unknown) => {
    throw codeOf(error) === 'STORE_TOO_LARGE' ? invalid('message_id', 'makes a copy that is too large') : error
  })
  texts.changed(mark)
  parts.publish({ type: 'conversation_forked', subject: subjectOf(copy), after: { from: id, message_id: messageId } }, ctx)
  return { conversation: summaryOf(copy, record, NEW), ...(place.text === undefined ? {} : { text: place.text }) }
}

const MESSAGE_ID = /^([1-9]\d{0,8})-(0|[1-9]\d{0,5})$/

/** The last turn of a copy that ends at a message, and the text of a message of the user. Throws INVALID_VALUE. */
async function placeOf(store: Store, id: string, messageId: string, turns: number, ctx: CallContext) {
  const [, turn, index] = MESSAGE_ID.exec(messageId) ?? []
  const number = Number(turn)
  if (turn === undefined || number > turns) throw messageUnknown(messageId)
  const [found] = await Array.fromAsync(readTurns(store, id, { from: number, to: number }, ctx))
  const message = found?.entry.messages[Number(index)]
  if (!message) throw messageUnknown(messageId)
  return message.role === 'user' ? { to: number - 1, text: textOf(message) } : { to: number }
}

function createOps(id: string, record: ConversationRecord, entries: readonly Json[]): StoreOp[] {
  return [
    { op: 'put', collection: COLLECTION, key: id, value: asJson(record), ifVersion: 0 },
    ...(entries.length === 0 ? [] : [{ op: 'append', log: LOG, id, values: entries, ifLength: 0 } as const]),
  ]
}

async function importAll(
  parts: ConversationsOptions,
  { format, content, labels }: Parameters<Conversations['import']>[0],
  ctx: CallContext
): Promise<readonly ConversationSummary[]> {
  if (format === 'markdown') throw invalid('format', 'must be jsonl or chat_completions: Markdown is only for reading')
  const more = checkedNames(labels === undefined ? {} : { labels }).labels ?? []
  const read = readImport(format, content)
  const made = read.map(one => {
    const id = newId()
    return { id, mark: wholeMark(id), ...importedRecord(one, more, parts.limits, ctx) }
  })
  // all or none: one batch
  const ops = made.flatMap(({ id, mark, record, entries }) => [...createOps(id, record, entries), ...parts.texts.ops(mark)])
  try {
    await parts.store.batch(ops, {}, ctx)
  } catch (error) {
    if (codeOf(error) === 'STORE_TOO_LARGE') throw invalid('content', 'is too large: import its conversations one by one')
    throw error
  }
  for (const { mark } of made) parts.texts.changed(mark)
  for (const { id, record } of made)
    parts.publish({ type: 'conversation_imported', subject: subjectOf(id), after: { message_count: record.count } }, ctx)
  return made.map(({ id, record }) => summaryOf(id, record, NEW))
}

/** An imported conversation is new: it belongs to the caller and begins now. */
function importedRecord(
  { title, labels = [], turns }: ImportedConversation,
  more: readonly string[],
  { maxMessages, maxBytes }: TurnLimits,
  ctx: CallContext
): { readonly record: ConversationRecord; readonly entries: readonly Json[] } {
  const all = checkedNames({ labels: [...labels, ...more] }).labels!
  const start = emptyRecord(ctx.principal.id, timestamp(), { labels: all, ...(title === undefined ? {} : { title }) })
  const record = turns.reduce((before: ConversationRecord, turn: TurnEntry) => grown(before, turn, before.updated), start)
  if (record.count > maxMessages) throw conversationFull(maxMessages, 'messages')
  if (record.bytes > maxBytes) throw conversationFull(maxBytes, 'bytes')
  return { record, entries: turns.map(asJson) }
}

async function deleteMany({ jobs }: ConversationsOptions, filter: ConversationFilter, ctx: CallContext) {
  if (!jobs) throw jobsUnavailable()
  const input = checkedFilter(filter, ctx)
  const { id } = await jobs.add({ kind: DELETE_KIND, input: { ...input } as Json, internal: DELETE_INTERNAL }, ctx)
  return { job: id }
}

async function removeAnywhere(
  { store, turns, texts, drops, deleted }: ConversationsOptions,
  id: string,
  ctx: CallContext
): Promise<boolean> {
  const remove = createRemoval({ store, texts, deleted })
  const isDropped = async (drop: Promise<boolean>) => {
    if (!(await drop)) return false
    await deleted(id, ctx)
    return true
  }
  if ((await isDropped(turns.drop(id, ctx))) || (await remove(id, undefined, ctx))) return true
  // Unknown ids and ids of other principals take the same path, so the timing reveals nothing.
  return (await isDropped(drops.elsewhere(id, ctx))) || (await remove(id, undefined, ctx))
}

/** Deletes stored conversations that the principal can access. A turn that ends at the same time is deleted too. */
export function createRemoval({ store, texts, deleted }: Parts & Pick<ConversationsOptions, 'deleted'>): RemoveConversation {
  return async (id, wanted, ctx) => {
    for (;;) {
      const found = await readRecord(store, id, ctx).catch(onlyUnknown)
      if (!found || (wanted !== undefined && wanted !== found.version)) return false
      const mark = wholeMark(id)
      const ops: StoreOp[] = [
        { op: 'delete', collection: COLLECTION, key: id, ifVersion: found.version },
        { op: 'drop', log: LOG, id },
        ...texts.ops(mark),
      ]
      try {
        await store.batch(ops, {}, ctx)
        texts.changed(mark)
        await deleted(id, ctx)
        return true
      } catch (error) {
        if (codeOf(error) !== 'STORE_CONFLICT') throw error
      }
    }
  }
}

function onlyUnknown(error: unknown): undefined {
  if (codeOf(error) !== 'CONVERSATION_UNKNOWN') throw error
}
