import type { ChatMessage, Conversation, ConversationSummary, Effective, Profile } from '@svc/core/contracts'

// Names change here and, for what belongs to a chat, in @svc/api-types: camelCase within, snake_case on the wire.

export const summaryWire = (one: ConversationSummary) => ({
  conversation_id: one.id,
  created_at: one.createdAt,
  updated_at: one.updatedAt,
  message_count: one.messageCount,
})

export const conversationWire = (one: Conversation) => ({ ...summaryWire(one), messages: one.messages.map(messageWire) })

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
