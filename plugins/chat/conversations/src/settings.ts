import { schema } from '@svc/core'

export interface ConversationsConfig {
  /** Messages a conversation may have. */
  max_messages: number
  /** Bytes of text a conversation may have. */
  max_bytes: number
  /** Milliseconds a process that died may keep a conversation. */
  lease_ms: number
}

export const CONVERSATIONS_CONFIG = schema<ConversationsConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    max_messages: { type: 'integer', minimum: 2, default: 10_000, description: 'Messages a conversation may have' },
    max_bytes: { type: 'integer', minimum: 1024, default: 16_777_216, description: 'Bytes of text a conversation may have' },
    lease_ms: {
      type: 'integer',
      minimum: 1000,
      default: 30_000,
      description: 'Milliseconds a process that died may keep a conversation',
    },
  },
})
