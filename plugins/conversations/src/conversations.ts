import { codeOf, type Use } from '@svc/core'
import type { Conversation, Conversations, Store, StoredMessage } from '@svc/core/contracts'
import { conversationUnknown, cursorInvalid } from './errors.ts'
import { COLLECTION, type ConversationRecord, LOG, SPACE, shownTurn, summaryOf, turnOf } from './record.ts'
import { readRecord, Turns, type TurnsParts } from './turns.ts'

/** Keeps conversations in the store. Opens its space. */
export async function createConversations(parts: TurnsParts): Promise<Conversations & Disposable> {
  const { store } = parts
  await store.open(SPACE, parts.lasting)
  const turns = new Turns(parts)
  return {
    begin: (wish, use) => turns.begin(wish, use),
    append: (ticket, messages, use) => turns.append(ticket, messages, use),
    end: ticket => turns.end(ticket),
    [Symbol.dispose]: () => turns.stop(),

    async get(id, use): Promise<Conversation> {
      const { value } = await readRecord(store, id, use)
      const messages = await readAll(store, id, value.turns, use)
      return { ...summaryOf(id, value), messages: messages.flatMap(shownTurn) }
    },

    async list({ limit, cursor }, use) {
      const all = use.principal.scopes.includes('admin') || use.principal.scopes.includes('*')
      const range = all ? { index: 'by_updated' } : { index: 'by_owner', equals: [use.principal.id] }
      const page = await pageOf(store, { ...range, reverse: true, limit, ...(cursor === undefined ? {} : { cursor }) }, use)
      const conversations = page.records.map(one => summaryOf(one.key, one.value as unknown as ConversationRecord))
      return { conversations, ...(page.next === undefined ? {} : { next: page.next }) }
    },

    async delete(id, use) {
      if (await turns.drop(id, use)) return
      const { version } = await readRecord(store, id, use)
      await remove(store, id, version, use)
    },
  }
}

const PAGE = 1000

async function readAll(store: Store, id: string, length: number, use: Use): Promise<StoredMessage[][]> {
  const turns: StoredMessage[][] = []
  while (turns.length < length) {
    const entries = await store.read(LOG, id, { from: turns.length + 1, limit: PAGE }, use)
    if (entries.length === 0) break
    turns.push(...entries.map(entry => turnOf(entry.value)))
  }
  return turns
}

async function pageOf(store: Store, query: Parameters<Store['range']>[1], use: Use) {
  try {
    return await store.range(COLLECTION, query, use)
  } catch (error) {
    throw codeOf(error) === 'STORE_INVALID' && query.cursor !== undefined ? cursorInvalid() : error
  }
}

/** A turn that ends at this very moment changes the version: then it is deleted with that turn. */
async function remove(store: Store, id: string, version: number, use: Use): Promise<void> {
  try {
    await store.batch(
      [
        { op: 'delete', collection: COLLECTION, key: id, ifVersion: version },
        { op: 'drop', log: LOG, id },
      ],
      {},
      use
    )
  } catch (error) {
    if (codeOf(error) !== 'STORE_CONFLICT') throw error
    const now = await store.get(COLLECTION, id, use)
    if (!now) throw conversationUnknown(id)
    await remove(store, id, now.version, use)
  }
}
