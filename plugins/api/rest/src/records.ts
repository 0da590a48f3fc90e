import type { ChatMessage, Conversation, ConversationSummary, Effective, Profile } from '@svc/core/contracts'

// These functions convert camelCase to the snake_case of the API. @svc/api-types does the same for chats and runs.

export const summaryWire = (conversationSummary: ConversationSummary) => ({
  conversation_id: conversationSummary.id,
  created_at: conversationSummary.createdAt,
  updated_at: conversationSummary.updatedAt,
  message_count: conversationSummary.messageCount,
})

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
