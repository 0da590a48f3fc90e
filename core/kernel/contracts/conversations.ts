import { defineService, type CallContext } from '@svc/core'
import type { ModelMessage } from './provider.ts'

/** `status` of an incomplete message. */
export type TurnStatus = 'completed' | 'failed' | 'cancelled'

/** A stored message: what models see, and the status of a turn that did not complete. */
export interface StoredMessage extends ModelMessage {
  readonly status?: Exclude<TurnStatus, 'completed'>
}

/** A conversation without its messages. Times are ISO 8601. */
export interface ConversationSummary {
  readonly id: string
  readonly owner: string
  readonly createdAt: string
  readonly updatedAt: string
  /** Number of messages that callers see. */
  readonly messageCount: number
}
/** A message that callers see: one of the user and one of the assistant per turn, without tool rounds. */
export interface ChatMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
  readonly status?: Exclude<TurnStatus, 'completed'>
}
export interface Conversation extends ConversationSummary {
  readonly messages: readonly ChatMessage[]
}

/** The exclusive right to write the next turn of a conversation, until `end`. */
export interface OpenTurn {
  readonly ticket: string
  readonly conversationId: string
  /** False when this turn creates the conversation. */
  readonly exists: boolean
  /** The latest turns, oldest first. */
  readonly turns: readonly (readonly StoredMessage[])[]
}

export interface BeginOptions {
  /** Absent: the turn creates a conversation. */
  readonly conversationId?: string
  /** Milliseconds to wait for earlier turns. */
  readonly waitMs: number
  /** Number of past turns to load. */
  readonly history: number
}

/**
 * Stores conversations. A principal sees only its own; the scopes `admin` and `*` see all. Others do not exist for it. Errors:
 * CONVERSATION_UNKNOWN (`details: {conversationId}`), CONVERSATION_BUSY (after `waitMs`), CONVERSATION_FULL (`details: {limit,
 * unit}`).
 */
export interface Conversations {
  /** Waits until earlier turns have ended, first come, first served. Call `end` for each turn that began. */
  begin(options: BeginOptions, ctx: CallContext): Promise<OpenTurn>
  /** Stores the messages of a turn durably and atomically, once per turn. Returns the updated conversation. */
  append(ticket: string, messages: readonly StoredMessage[], ctx: CallContext): Promise<ConversationSummary>
  /** Ends the turn, whether or not messages were appended. */
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
