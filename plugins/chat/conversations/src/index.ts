import { definePlugin, Host, schema, systemContext } from '@svc/core'
import { Conversations, Peers, Store } from '@svc/core/contracts'
import { createConversations } from './conversations.ts'
import { createDrops, Makers } from './other-workers.ts'
import { Turns } from './turns.ts'

interface ConversationsConfig {
  /** Maximum messages of a conversation. */
  max_messages: number
  /** Maximum bytes of text of a conversation. */
  max_bytes: number
  /** Maximum milliseconds for which a crashed process blocks a conversation. */
  lease_ms: number
}

const CONVERSATIONS_CONFIG = schema<ConversationsConfig>({
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
  },
})

export default definePlugin({
  section: 'conversations',
  config: CONVERSATIONS_CONFIG,
  requires: { store: Store, host: Host },
  optional: { peers: Peers },
  provides: Conversations,
  async setup(scope, { store, host, peers }) {
    const { max_messages, max_bytes, lease_ms } = scope.config
    const lasting = systemContext(scope.signal, 'conversations')
    const holder = `${(await host.report(lasting)).worker}/`
    const limits = { maxMessages: max_messages, maxBytes: max_bytes, leaseMs: lease_ms }
    const turns = new Turns({ store, holder, limits, log: scope.log, lasting })
    const drops = createDrops(turns, peers)
    const makers = new Makers({ turns, peers, holder, lasting })
    scope.tap(Peers.hooks.message, drops.onPeerMessage)
    scope.tap(Peers.hooks.message, makers.onPeerMessage)
    scope.tap(Peers.hooks.workerExit, makers.gone)
    return scope.use(await createConversations({ store, turns, drops, makers, lasting }))
  },
})
