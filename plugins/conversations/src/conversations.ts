import { codeOf, type Log, type Use } from '@svc/core'
import type { Conversation, Conversations, Store, StoredMessage } from '@svc/core/contracts'
import { conversationUnknown, cursorInvalid } from './errors.ts'
import { COLLECTION, type ConversationRecord, LOG, SPACE, shownTurn, summaryOf } from './record.ts'
import { createTurns, readRecord, type TurnLimits } from './turns.ts'

export interface ConversationsParts {
  readonly store: Store
  /** Names this process among those that share the store. */
  readonly holder: string
  readonly limits: TurnLimits
  readonly log: Log
  /** The circumstances of work that must end although a caller left. */
  readonly lasting: Use
}

/** Keeps conversations in the store. Opens its space. */
export async function createConversations({
  store,
  holder,
  limits,
  log,
  lasting,
}: ConversationsParts): Promise<Conversations & { stop(): void }> {
  await store.open(SPACE, lasting)
  const turns = createTurns(store, holder, limits, log, lasting)
  return {
    ...turns,

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
    turns.push(...entries.map(entry => entry.value as unknown as StoredMessage[]))
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
