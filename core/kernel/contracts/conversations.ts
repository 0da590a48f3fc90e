import { defineService, type CallContext, type Series } from '@svc/core'
import type { MessagePart, ModelMessage, Usage } from './provider.ts'

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
  /** Changes with each turn and each change of names. For `update`. */
  readonly version: number
  readonly createdAt: string
  readonly updatedAt: string
  /** Number of messages that callers see. */
  readonly messageCount: number
  /** The given title, or the first words of the first turn. */
  readonly title?: string
  /** Sorted. Absent if there are none. */
  readonly labels?: readonly string[]
  /** The model that answered last. Absent if no turn has recorded it. */
  readonly provider?: string
  readonly model?: string
  /** Tokens of all turns that have recorded them. Turns of older releases and imported turns have not. */
  readonly tokens?: { readonly input: number; readonly output: number }
  /** The conversation that this one is a copy of, up to a message. That conversation can be deleted. */
  readonly forkedFrom?: { readonly conversationId: string; readonly messageId?: string }
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

/** Title and labels of a conversation. */
export interface NewConversation {
  /** 1 to 200 characters, without control characters. Default: the first words of the first turn. */
  readonly title?: string
  /** At most 32, each of 1 to 64 characters without control characters and commas. */
  readonly labels?: readonly string[]
}

/** Changes title and labels. */
export interface ConversationChange extends NewConversation {
  /** Only if the conversation has this version. Otherwise it throws PRECONDITION_FAILED. */
  readonly ifVersion?: number
  /** Only if no title was given. Otherwise nothing changes. */
  readonly ifUntitled?: boolean
}

/** A model step of a turn: the model that answered, and its tokens. */
export interface TurnStep {
  /** Index of its message in the turn. A step whose answer was rejected has the index of the next answer. */
  readonly message: number
  readonly provider: string
  readonly model: string
  readonly usage: Usage
}

/** A stored message with its id and what it cost. */
export interface MessageDetail {
  /** Unique in the conversation: the number of the turn and the index of the message in it, such as `3-0`. */
  readonly id: string
  readonly role: StoredMessage['role']
  readonly parts: readonly MessagePart[]
  readonly status?: Exclude<TurnStatus, 'completed'>
  /** The model that answered, and its tokens. Absent for messages of others, and where they were not recorded. */
  readonly provider?: string
  readonly model?: string
  readonly usage?: Usage
}
/** A stored turn with the rounds of its tools. */
export interface TurnDetail {
  /** From 1, without gaps. */
  readonly number: number
  /** When it was stored, ISO 8601. Absent for turns of older releases. */
  readonly at?: string
  readonly messages: readonly MessageDetail[]
}

/** A message that matches a search, around the first matches. */
export interface ConversationMatch {
  /** Absent if the title matches. */
  readonly messageId?: string
  readonly text: string
  /** Begin and end of each match, as indexes of `text`. */
  readonly marks: readonly (readonly [from: number, to: number])[]
}
export interface FoundConversation {
  readonly conversation: ConversationSummary
  readonly matches: readonly ConversationMatch[]
}

/** Conversations to delete: those that meet all conditions. At least one condition. */
export interface ConversationFilter {
  readonly label?: string
  /** ISO 8601. Only conversations whose last turn is older. */
  readonly before?: string
  /** A search, see `search`. */
  readonly q?: string
  /** The owner. Default: the caller. `*`: all owners. Others than the caller only with the scope `admin`. */
  readonly owner?: string
}

/** `jsonl` keeps everything, and can be imported. `chat_completions` has the messages of a chat completion. `markdown` is only for reading. */
export type ExportFormat = 'jsonl' | 'chat_completions' | 'markdown'

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
  /** Title and labels, if the turn creates a conversation. */
  readonly newConversation?: NewConversation
  /** Absent: the turn creates a conversation. */
  readonly conversationId?: string
  /**
   * The turn was creating `conversationId` when its worker exited, and creates it now. Only for a turn that its plugin has stored:
   * never pass an id of a client.
   */
  readonly restored?: boolean
  /** Milliseconds to wait for earlier turns. */
  readonly waitMs: number
  /** Number of past turns to load. */
  readonly history: number
}

/**
 * Stores conversations. A principal sees only its own; the scopes `admin` and `*` see all. Others do not exist for it. Errors:
 * CONVERSATION_UNKNOWN (`details: {conversationId}`), CONVERSATION_BUSY (after `waitMs`), CONVERSATION_FULL (`details: {limit,
 * unit}`), INVALID_VALUE (`details: {field, reason}`; an import also has `line`), FORBIDDEN, UNAVAILABLE (a search without the
 * service `TextIndex`, a deletion of many without `Jobs`). Changes are events of the category AUDIT.
 */
export interface Conversations {
  /** Waits until earlier turns have ended, first come, first served. Call `end` for each turn that began. */
  begin(options: BeginOptions, ctx: CallContext): Promise<OpenTurn>
  /** Stores the messages of a turn and its model steps durably and atomically, once per turn. Returns the updated conversation. */
  append(
    ticket: string,
    messages: readonly StoredMessage[],
    steps: readonly TurnStep[],
    ctx: CallContext
  ): Promise<ConversationSummary>
  /** Ends the turn, whether or not messages were appended. */
  end(ticket: string, ctx: CallContext): Promise<void>
  get(conversationId: string, ctx: CallContext): Promise<Conversation>
  /** Turns with their tool rounds from number `from` on. `limit`: 1 to 1000. `next`: the number of the following turn, if there is one. */
  turns(
    conversationId: string,
    query: { readonly from: number; readonly limit: number },
    ctx: CallContext
  ): Promise<{ readonly conversation: ConversationSummary; readonly turns: readonly TurnDetail[]; readonly next?: number }>
  /** Newest first. `next` is the cursor of the following page. With `label`, a page can be shorter, even empty. */
  list(
    query: { readonly limit: number; readonly cursor?: string; readonly label?: string },
    ctx: CallContext
  ): Promise<{ readonly conversations: readonly ConversationSummary[]; readonly next?: string }>
  /**
   * Full-text search in titles, messages of users and replies, best first. `q` is a query of `TextIndex`, at most 1000 characters.
   * A turn is found soon after it is stored. A page can be shorter, and a later page can have further matches of a conversation.
   */
  search(
    query: { readonly q: string; readonly limit: number; readonly cursor?: string; readonly label?: string },
    ctx: CallContext
  ): Promise<{ readonly found: readonly FoundConversation[]; readonly next?: string }>
  /** Sets title or labels; an empty list removes all labels. A running turn goes on. */
  update(conversationId: string, change: ConversationChange, ctx: CallContext): Promise<ConversationSummary>
  /**
   * Copies a conversation to a new one of the caller. At a message of a user, the copy ends before that turn; at another
   * message, with its turn. Without `messageId`, it has all turns. `text` is the text of the message of a user.
   */
  fork(
    conversationId: string,
    options: NewConversation & { readonly messageId?: string },
    ctx: CallContext
  ): Promise<{ readonly conversation: ConversationSummary; readonly text?: string }>
  /** Yields the text of an export. */
  export(conversationId: string, format: ExportFormat, ctx: CallContext): AsyncIterable<string>
  /**
   * Stores the conversations of an export, all or none, as new ones of the caller. `format`: `jsonl` or `chat_completions`. Usage and
   * opaque data of providers are not taken over.
   */
  import(
    input: { readonly format: ExportFormat; readonly content: string; readonly labels?: readonly string[] },
    ctx: CallContext
  ): Promise<readonly ConversationSummary[]>
  delete(conversationId: string, ctx: CallContext): Promise<void>
  /** Deletes many in a background job. Returns the id of the job; its result is `{deleted}`. */
  deleteMany(filter: ConversationFilter, ctx: CallContext): Promise<{ readonly job: string }>
  /** Gives a conversation to another principal. Only with the scope `admin`. */
  handOver(conversationId: string, owner: string, ctx: CallContext): Promise<ConversationSummary>
}

export interface ConversationsHooks {
  /** A conversation was deleted, also one that a turn was creating. Runs in the worker that deleted it, before it answers. */
  deleted: Series<{ readonly conversationId: string }>
}

export const Conversations = defineService<Conversations, ConversationsHooks>('conversations', {
  api: 1,
  methods: {
    begin: 'call',
    append: 'call',
    end: 'call',
    get: 'call',
    turns: 'call',
    list: 'call',
    search: 'call',
    update: 'call',
    fork: 'call',
    export: 'stream',
    import: 'call',
    delete: 'call',
    deleteMany: 'call',
    handOver: 'call',
  },
  hooks: { deleted: 'series' },
})
