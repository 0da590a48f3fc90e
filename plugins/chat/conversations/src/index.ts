import { definePlugin, Events, Host, schema, systemContext } from '@svc/core'
import { Conversations, Http, JobKinds, Jobs, Peers, Store, TextIndex } from '@svc/core/contracts'
import { type Publish, publishChange } from '@svc/plugin-kit'
import { createDeletion, DELETE_KIND, Retention } from './cleanup.ts'
import { createConversations, createRemoval, openConversations } from './conversations.ts'
import { createDrops, Makers } from './other-workers.ts'
import { Texts } from './texts.ts'
import { Turns } from './turns.ts'

interface ConversationsConfig {
  max_messages: number
  max_bytes: number
  lease_ms: number
  keep_days: number
  keep_labels: Record<string, number>
}

const DAYS = { type: 'number', minimum: 0, maximum: 36_500 }

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
    keep_days: {
      ...DAYS,
      default: 0,
      description: 'Days after its last turn for which svc keeps a conversation. 0: for good',
    },
    keep_labels: {
      type: 'object',
      additionalProperties: DAYS,
      default: {},
      description: 'The same for conversations with a label, instead of keep_days. With several such labels, the longest applies',
    },
  },
})

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

    const remove = createRemoval({ store, texts })
    const deletion = createDeletion({
      store,
      search: (query, ctx) => texts.search(query, ctx),
      remove,
      deleted: (filter, count, ctx) =>
        publish({ type: 'conversations_deleted', subject: 'conversations', after: { ...filter, count } }, ctx),
    })
    if (jobs) scope.add(JobKinds, DELETE_KIND, deletion)
    const retention = scope.use(
      new Retention({
        store,
        keep: { days: config.keep_days, labels: config.keep_labels },
        remove,
        pruned: count => publish({ type: 'conversations_pruned', subject: 'conversations', after: { count } }, lasting),
        holder,
        log,
        lasting,
      })
    )
    // only the workers of a server
    if (peers !== undefined || http !== undefined)
      scope.tap(Host.hooks.ready, async (): Promise<undefined> => {
        texts.begin()
        retention.begin()
      })
    return scope.use(createConversations({ store, turns, texts, limits, drops, makers, jobs, publish }))
  },
})
