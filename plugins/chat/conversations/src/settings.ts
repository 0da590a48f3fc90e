import { schema } from '@svc/core'

export interface ConversationsConfig {
  max_messages: number
  max_bytes: number
  lease_ms: number
  keep_days: number
  keep_labels: Record<string, number>
}

const DAYS = { type: 'number', minimum: 0, maximum: 36_500 }

export const CONVERSATIONS_CONFIG = schema<ConversationsConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    max_messages: { type: 'integer', minimum: 2, default: 10_000, description: 'Maximum messages of a conversation' },
    max_bytes: { type: 'integer', minimum: 1024, default: 16_777_216, description: 'Maximum bytes of text of a conversation' },
    lease_ms: {
      type: 'integer',
      minimum: 1000,
      default: 30_000,
      description: 'Maximum milliseconds for which a crashed process blocks a conversation',
    },
    keep_days: {
      ...DAYS,
      default: 0,
      description: 'Days after its last turn for which svc keeps a conversation. 0: forever',
    },
    keep_labels: {
      type: 'object',
      additionalProperties: DAYS,
      default: {},
      description: 'The same for conversations with a label, instead of keep_days. With several such labels, the longest applies',
    },
  },
})
