import { definePlugin, Host, schema, systemUse } from '@svc/core'
import { Conversations, Store } from '@svc/core/contracts'
import { createConversations } from './conversations.ts'

export interface ConversationsConfig {
  /** Messages a conversation may have. */
  max_messages: number
  /** Bytes of text a conversation may have. */
  max_bytes: number
  /** Milliseconds a process that died may keep a conversation. */
  lease_ms: number
}

export default definePlugin({
  section: 'conversations',
  config: schema<ConversationsConfig>({
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
  }),
  requires: { store: Store, host: Host },
  provides: Conversations,
  async setup(scope, { store, host }) {
    const { max_messages, max_bytes, lease_ms } = scope.config
    const lasting = systemUse(scope.signal, 'conversations')
    const holder = `${(await host.report(lasting)).serverId}/${process.pid}/`
    const limits = { maxMessages: max_messages, maxBytes: max_bytes, leaseMs: lease_ms }
    return scope.use(await createConversations({ store, holder, limits, log: scope.log, lasting }))
  },
})
