import { definePlugin, type HookCallers, type Principal, systemContext } from '@svc/core'
import { Conversations, type PeerMessage, Peers, type PeersHooks, Store, type StoredMessage } from '@svc/core/contracts'
import { service, testHost, testContext } from '@svc/testing'
import { setTimeout as wait } from 'node:timers/promises'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

export const person = (id: string, ...scopes: string[]): Principal => ({ id, scopes })
export const by = (principal: Principal) => testContext({ principal })
export const ANN = by(person('ann'))

/** Two workers on one store, which hear each other. */
export async function two() {
  const all: HookCallers<PeersHooks>[] = []
  const news: PeerMessage[] = []
  const peers = definePlugin({
    provides: Peers,
    setup(scope) {
      all.push(scope.hooks)
      return {
        async broadcast(topic, message, { signal }) {
          news.push({ topic, message })
          await Promise.all(all.map(hooks => hooks.message({ topic, message }, systemContext(signal))))
        },
        metrics: async () => [],
        acquire: async () => true,
        release: async () => {},
        self: async () => 'w1',
        async *ask() {},
      }
    },
  })
  const give = [{ name: 'test:peers', use: peers }]
  const first = await testHost(['store-memory', 'conversations'].map(pluginFolder), { give })
  const second = await testHost([pluginFolder('conversations')], { give: [...give, service(Store, first.service(Store))] })
  return {
    makes: first.service(Conversations),
    other: second.service(Conversations),
    news,
    topics: () => news.map(peerMessage => peerMessage.topic),
    /** Resolves when something is told under this topic. */
    async said(topic: string): Promise<PeerMessage> {
      for (;;) {
        const found = news.find(peerMessage => peerMessage.topic === topic)
        if (found) return found
        await wait(5)
      }
    },
    /** The other one hears that a worker has ended. */
    gone: (holder: string) => all[1]!.workerExit({ worker: holder.slice(0, -1), node: 'n', holder }, testContext()),
    async [Symbol.asyncDispose]() {
      await second.close()
      await first.close()
    },
  }
}

export const TURN: StoredMessage[] = [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }]
export const outcomeOf = (work: Promise<unknown>) =>
  work.then(() => 'done').catch((error: Error & { code: string }) => `${error.code} ${error.message}`)
export const unknown = (id: string) => `CONVERSATION_UNKNOWN there is no conversation "${id}"`
