import { definePlugin, Host, systemContext } from '@svc/core'
import { Conversations, Peers, Store } from '@svc/core/contracts'
import { createConversations } from './conversations.ts'
import { createDrops } from './drops.ts'
import { Makers } from './makers.ts'
import { CONVERSATIONS_CONFIG } from './settings.ts'
import { Turns } from './turns.ts'

export default definePlugin({
  section: 'conversations',
  config: CONVERSATIONS_CONFIG,
  requires: { store: Store, host: Host },
  optional: { peers: Peers },
  provides: Conversations,
  async setup(scope, { store, host, peers }) {
    const { max_messages, max_bytes, lease_ms } = scope.config
    const lasting = systemContext(scope.signal, 'conversations')
    const holder = `${(await host.report(lasting)).serverId}/${process.pid}/`
    const limits = { maxMessages: max_messages, maxBytes: max_bytes, leaseMs: lease_ms }
    const turns = new Turns({ store, holder, limits, log: scope.log, lasting })
    const drops = createDrops(turns, peers)
    const makers = new Makers({ turns, peers, holder, lasting })
    scope.tap(Peers.hooks.message, drops.told)
    scope.tap(Peers.hooks.message, makers.told)
    scope.tap(Peers.hooks.workerExit, makers.gone)
    return scope.use(await createConversations({ store, turns, drops, makers, lasting }))
  },
})
