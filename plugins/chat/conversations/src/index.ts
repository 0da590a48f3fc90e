import { type CallContext, definePlugin, Events, Host, systemContext } from '@svc/core'
import { Conversations, Http, JobKinds, Jobs, Peers, Store, TextIndex } from '@svc/core/contracts'
import { type Publish, publishChange } from '@svc/plugin-kit'
import { createDeletion, DELETE_KIND, Retention } from './cleanup.ts'
import { createConversations, createRemoval, openConversations } from './conversations.ts'
import { createDrops, Makers } from './other-workers.ts'
import { CONVERSATIONS_CONFIG } from './settings.ts'
import { Texts } from './texts.ts'
import { Turns } from './turns.ts'

export default definePlugin({
  section: 'conversations',
  config: CONVERSATIONS_CONFIG,
  requires: { store: Store, host: Host, events: Events },
  optional: { peers: Peers, http: Http, jobs: Jobs, index: TextIndex },
  provides: Conversations,
  async setup(scope, { store, host, events, peers, http, jobs, index }) {
    const { config, log } = scope
    const lasting = systemContext(scope.signal, 'conversations')
    const holder = `${(await host.report(lasting)).worker}/`
    const limits = { maxMessages: config.max_messages, maxBytes: config.max_bytes, leaseMs: config.lease_ms }
    const publish: Publish = (change, ctx) => publishChange(events, log, change, ctx)
    await openConversations(store, index !== undefined, lasting)

    const texts = scope.use(new Texts({ store, index, log, lasting }))
    const turns = new Turns({ store, holder, limits, marks: texts, log, lasting })
    const drops = createDrops(turns, peers)
    const makers = new Makers({ turns, peers, holder, lasting })
    scope.tap(Peers.hooks.message, drops.onPeerMessage)
    scope.tap(Peers.hooks.message, makers.onPeerMessage)
    scope.tap(Peers.hooks.workerExit, makers.gone)

    const deleted = async (conversationId: string, ctx: CallContext) => {
      await scope.hooks.deleted({ conversationId }, ctx)
    }
    const remove = createRemoval({ store, texts, deleted })
    if (jobs) scope.add(JobKinds, DELETE_KIND, createDeletion({ store, texts, remove, publish }))
    const keep = { days: config.keep_days, labels: config.keep_labels }
    const retention = scope.use(new Retention({ store, keep, remove, publish, holder, log, lasting }))
    // only the workers of a server
    if (peers !== undefined || http !== undefined)
      scope.tap(Host.hooks.ready, async (): Promise<undefined> => {
        texts.begin()
        retention.begin()
      })
    return scope.use(createConversations({ store, turns, texts, limits, drops, makers, jobs, publish, deleted }))
  },
})
