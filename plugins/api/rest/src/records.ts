import type { ChatMessage, Conversation, ConversationMatch, ConversationSummary, Effective, Profile } from '@svc/core/contracts'

// These functions convert camelCase to the snake_case of the API. @svc/api-types does the same for chats and runs.

export const summaryWire = (conversationSummary: ConversationSummary) => ({
  conversation_id: conversationSummary.id,
  created_at: conversationSummary.createdAt,
  updated_at: conversationSummary.updatedAt,
  message_count: conversationSummary.messageCount,
})

/** A conversation without its messages, with all that is known of it. */
export const conversationDetailWire = (conversation: ConversationSummary) => ({
  ...summaryWire(conversation),
  owner: conversation.owner,
  title: conversation.title ?? null,
  labels: conversation.labels ?? [],
  provider: conversation.provider ?? null,
  model: conversation.model ?? null,
  usage: conversation.tokens ? { input_tokens: conversation.tokens.input, output_tokens: conversation.tokens.output } : null,
  forked_from: conversation.forkedFrom
    ? { conversation_id: conversation.forkedFrom.conversationId, message_id: conversation.forkedFrom.messageId ?? null }
    : null,
})

export const matchWire = ({ messageId, text, marks }: ConversationMatch) => ({ message_id: messageId ?? null, text, marks })

export const conversationWire = (conversation: Conversation) => ({
  ...summaryWire(conversation),
  messages: conversation.messages.map(messageWire),
})

export const messageWire = ({ role, content, status }: ChatMessage) => ({
  role,
  content,
  ...(status === undefined ? {} : { status }),
})

export const effectiveWire = (effective: Effective) => ({
  profile: effective.profile,
  provider: effective.provider,
  model: effective.model,
  mode: effective.mode,
  override: effective.override && { provider: effective.override.provider, model: effective.override.model },
  profiles: effective.profiles,
  modes: effective.modes,
  source: { provider: effective.source.provider, model: effective.source.model },
})

export const profileWire = (profile: Profile, active: string, standard: string) => ({
  name: profile.name,
  provider: profile.provider ?? null,
  model: profile.model ?? null,
  description: profile.description ?? null,
  temperature: profile.temperature ?? null,
  max_tokens: profile.maxTokens ?? null,
  is_default: profile.name === standard,
  active: profile.name === active,
})
