import { defineService, type CallContext } from '@svc/core'
import type { ModelMessage } from './provider.ts'

/** `status` of a message that is not whole. */
export type TurnStatus = 'completed' | 'failed' | 'cancelled'

/** A message as it is kept: what models see, and how its turn ended where it did not complete. */
export interface StoredMessage extends ModelMessage {
  readonly status?: Exclude<TurnStatus, 'completed'>
}

/** A conversation without its messages. Times are ISO 8601. */
export interface ConversationSummary {
  readonly id: string
  readonly owner: string
  readonly createdAt: string
  readonly updatedAt: string
  /** Messages as callers see them. */
  readonly messageCount: number
}
/** A message as callers see it: one of the user and one of the assistant a turn, tool rounds left out. */
export interface ChatMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
  readonly status?: Exclude<TurnStatus, 'completed'>
}
export interface Conversation extends ConversationSummary {
  readonly messages: readonly ChatMessage[]
}

/** The right to write the next turn of one conversation: nobody else can until `end`. */
export interface OpenTurn {
  readonly ticket: string
  readonly conversationId: string
  /** False when this turn makes the conversation. */
  readonly exists: boolean
  /** The last turns, oldest first. */
  readonly turns: readonly (readonly StoredMessage[])[]
}

export interface TurnWish {
  /** Absent: the turn makes a new conversation. */
  readonly conversationId?: string
  /** Milliseconds to wait for turns before this one. */
  readonly waitMs: number
  /** How many turns of its past to bring. */
  readonly history: number
}

/**
 * Keeps conversations. A principal sees only its own (scope `admin` or `*` sees all); what it may not see does not exist for it.
 * Errors: CONVERSATION_UNKNOWN (`details: {conversationId}`), CONVERSATION_BUSY (waited `waitMs`), CONVERSATION_FULL (`details: {limit, unit}`).
 */
export interface Conversations {
  /** Waits for its turn, in the order of asking. Each turn that began must be ended. */
  begin(wish: TurnWish, ctx: CallContext): Promise<OpenTurn>
  /** Keeps the messages of a turn, durably, in one piece; once a turn. Returns the conversation as it is then. */
  append(ticket: string, messages: readonly StoredMessage[], ctx: CallContext): Promise<ConversationSummary>
  /** Gives the turn back, whether or not anything was appended. */
  end(ticket: string, ctx: CallContext): Promise<void>
  get(conversationId: string, ctx: CallContext): Promise<Conversation>
  /** Newest first. `next` is the cursor of the following page. */
  list(
    query: { readonly limit: number; readonly cursor?: string },
    ctx: CallContext
  ): Promise<{ readonly conversations: readonly ConversationSummary[]; readonly next?: string }>
  delete(conversationId: string, ctx: CallContext): Promise<void>
}

export const Conversations = defineService<Conversations>('conversations', {
  api: 1,
  methods: { begin: 'call', append: 'call', end: 'call', get: 'call', list: 'call', delete: 'call' },
})
