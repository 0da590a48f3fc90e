import { codeOf, type CallContext } from '@svc/core'
import type { Conversation, Conversations, Store, StoredMessage } from '@svc/core/contracts'
import { conversationUnknown, cursorInvalid } from './errors.ts'
import { COLLECTION, type ConversationRecord, LOG, SPACE, shownTurn, summaryOf, turnOf, readRecord, type Turns } from './turns.ts'
import type { Drops, Makers } from './other-workers.ts'

interface ConversationsOptions {
  readonly store: Store
  readonly turns: Turns
  readonly drops: Pick<Drops, 'elsewhere'>
  readonly makers: Pick<Makers, 'wait'>
  readonly lasting: CallContext
}

/** Keeps conversations in the store. Opens its space. */
export async function createConversations(parts: ConversationsOptions): Promise<Conversations & Disposable> {
  const { store, turns, drops, makers } = parts
  await store.open(SPACE, parts.lasting)
  return {
    append: (ticket, messages, ctx) => turns.append(ticket, messages, ctx),
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
      const { value } = await readRecord(store, id, ctx)
      const messages = await readAll(store, id, value.turns, ctx)
      return { ...summaryOf(id, value), messages: messages.flatMap(shownTurn) }
    },

    async list({ limit, cursor }, ctx) {
      const all = ctx.principal.scopes.includes('admin') || ctx.principal.scopes.includes('*')
      const range = all ? { index: 'by_updated' } : { index: 'by_owner', equals: [ctx.principal.id] }
      const page = await pageOf(store, { ...range, reverse: true, limit, ...(cursor === undefined ? {} : { cursor }) }, ctx)
      const conversations = page.records.map(record => summaryOf(record.key, record.value as unknown as ConversationRecord))
      return { conversations, ...(page.next === undefined ? {} : { next: page.next }) }
    },

    async delete(id, ctx) {
      if ((await turns.drop(id, ctx)) || (await removeKept(store, id, ctx))) return
      // Unknown ids and ids of other principals take the same path, so the timing reveals nothing.
      if ((await drops.elsewhere(id, ctx)) || (await removeKept(store, id, ctx))) return
      throw conversationUnknown(id)
    },
  }
}

const PAGE = 1000

async function readAll(store: Store, id: string, length: number, ctx: CallContext): Promise<StoredMessage[][]> {
  const turns: StoredMessage[][] = []
  while (turns.length < length) {
    const entries = await store.read(LOG, id, { from: turns.length + 1, limit: PAGE }, ctx)
    if (entries.length === 0) break
    turns.push(...entries.map(entry => turnOf(entry.value)))
  }
  return turns
}

async function pageOf(store: Store, query: Parameters<Store['range']>[1], ctx: CallContext) {
  try {
    return await store.range(COLLECTION, query, ctx)
  } catch (error) {
    throw codeOf(error) === 'STORE_INVALID' && query.cursor !== undefined ? cursorInvalid() : error
  }
}

/** Returns false if there is none that this principal can access. */
async function removeKept(store: Store, id: string, ctx: CallContext): Promise<boolean> {
  try {
    const { version } = await readRecord(store, id, ctx)
    await remove(store, id, version, ctx)
    return true
  } catch (error) {
    if (codeOf(error) !== 'CONVERSATION_UNKNOWN') throw error
    return false
  }
}

/** A turn that ends at the same time changes the version. Then the next attempt deletes the conversation with that turn. */
async function remove(store: Store, id: string, version: number, ctx: CallContext): Promise<void> {
  try {
    await store.batch(
      [
        { op: 'delete', collection: COLLECTION, key: id, ifVersion: version },
        { op: 'drop', log: LOG, id },
      ],
      {},
      ctx
    )
  } catch (error) {
    if (codeOf(error) !== 'STORE_CONFLICT') throw error
    const now = await store.get(COLLECTION, id, ctx)
    if (!now) throw conversationUnknown(id)
    await remove(store, id, now.version, ctx)
  }
}
