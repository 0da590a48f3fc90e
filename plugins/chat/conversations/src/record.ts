import type { ChatMessage, ConversationSummary, Json, Space, StoredMessage, TextPart } from '@svc/core/contracts'
import { timelyId } from '@svc/storage-kit'

/** What the store keeps of a conversation; its turns are entries of the log. */
export interface ConversationRecord {
  readonly owner: string
  readonly created: string
  readonly updated: string
  /** Messages as callers see them. */
  readonly count: number
  readonly turns: number
  readonly bytes: number
}

/** A new id. */
export const newId = () => `conv_${timelyId().replaceAll('-', '')}`
/** Whether an id may be one that was made here. */
export const isMade = (id: string) => /^conv_[0-9a-f]{32}$/.test(id)

export const COLLECTION = 'conversations'
export const LOG = 'conversation_turns'

export const SPACE: Space = {
  name: 'conversations',
  version: 1,
  collections: { [COLLECTION]: { indexes: { by_owner: ['owner', 'updated'], by_updated: ['updated'] } } },
  logs: [LOG],
}

export const asJson = (value: object): Json => value as unknown as Json

/** A turn as an entry of the log holds it. */
export const turnOf = (value: Json): StoredMessage[] => value as unknown as StoredMessage[]

export function summaryOf(id: string, record: ConversationRecord): ConversationSummary {
  return { id, owner: record.owner, createdAt: record.created, updatedAt: record.updated, messageCount: record.count }
}

const textOf = (message: StoredMessage) =>
  message.parts
    .filter((part): part is TextPart => part.type === 'text')
    .map(part => part.text)
    .join('')

/** A turn as callers see it: what the user said and, in one piece, what the assistant said over all its rounds. */
export function shownTurn(turn: readonly StoredMessage[]): ChatMessage[] {
  const user = turn
    .filter(message => message.role === 'user')
    .map(message => ({ role: 'user' as const, content: textOf(message) }))
  const assistant = turn.filter(message => message.role === 'assistant')
  if (assistant.length === 0) return user
  const status = assistant.find(message => message.status)?.status
  return [...user, { role: 'assistant', content: assistant.map(textOf).join(''), ...(status ? { status } : {}) }]
}

/** How many messages `shownTurn` makes of a turn. */
function countShown(turn: readonly StoredMessage[]): number {
  const users = turn.filter(message => message.role === 'user').length
  return turn.some(message => message.role === 'assistant') ? users + 1 : users
}

/** The record after one more turn. */
export function grown(
  record: ConversationRecord | undefined,
  owner: string,
  turn: readonly StoredMessage[],
  now: string
): ConversationRecord {
  const base = record ?? { owner, created: now, updated: now, count: 0, turns: 0, bytes: 0 }
  const updated = now > base.updated ? now : base.updated
  return { ...base, updated, count: base.count + countShown(turn), turns: base.turns + 1, bytes: base.bytes + sizeOf(turn) }
}

/** The UTF-8 size of a turn's text, near enough for a limit: what is counted is what was said, not how it is kept. */
function sizeOf(turn: readonly StoredMessage[]): number {
  let sum = 0
  for (const { parts } of turn)
    for (const part of parts) sum += part.type === 'text' ? Buffer.byteLength(part.text) : JSON.stringify(part).length
  return sum
}
