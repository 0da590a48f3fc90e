import { definePlugin, type HookCallers, type Principal, systemUse } from '@svc/core'
import { Conversations, Peers, type PeersHooks, Store, type StoredMessage } from '@svc/core/contracts'
import { service, testHost, testUse } from '@svc/core/testing'
import { expect } from 'chai'

const packageOf = (name: string) => new URL(`../../${name}/`, import.meta.url)
const person = (id: string, ...scopes: string[]): Principal => ({ id, scopes })
const by = (principal: Principal) => testUse({ principal })
const ANN = by(person('ann'))

/** Two workers on one store, which hear each other. */
async function two() {
  const all: HookCallers<PeersHooks>[] = []
  const news: string[] = []
  const peers = definePlugin({
    provides: Peers,
    setup(scope) {
      all.push(scope.hooks)
      return {
        async tell(topic, message, { signal }) {
          news.push(topic)
          await Promise.all(all.map(hooks => hooks.told({ topic, message }, systemUse(signal))))
        },
        figures: async () => [],
        size: async () => 2,
      }
    },
  })
  const give = [{ name: 'test:peers', use: peers }]
  const first = await testHost(['store-memory', 'conversations'].map(packageOf), { give })
  const second = await testHost([packageOf('conversations')], { give: [...give, service(Store, first.service(Store))] })
  return {
    makes: first.service(Conversations),
    other: second.service(Conversations),
    news,
    async [Symbol.asyncDispose]() {
      await second.close()
      await first.close()
    },
  }
}

const TURN: StoredMessage[] = [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }]
const told = (work: Promise<unknown>) =>
  work.then(() => 'done').catch((error: Error & { code: string }) => `${error.code} ${error.message}`)
const unknown = (id: string) => `CONVERSATION_UNKNOWN there is no conversation "${id}"`

describe('a conversation in the making, asked for through another worker', () => {
  it('is deleted once, and its turn is not kept', async () => {
    await using both = await two()
    const { ticket, conversationId: id } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    expect(await told(both.other.delete(id, ANN))).to.equal('done')
    expect(await told(both.other.delete(id, ANN))).to.equal(unknown(id))
    expect(await told(both.makes.append(ticket, TURN, ANN))).to.equal(unknown(id))
    await both.makes.end(ticket, ANN)
    expect(await told(both.makes.get(id, ANN))).to.equal(unknown(id))
  })

  it('is unknown to others, as one that is kept and one that never was, and is asked for in the same way', async () => {
    await using both = await two()
    const { ticket, conversationId: young } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    const kept = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    await both.makes.append(kept.ticket, TURN, ANN)
    await both.makes.end(kept.ticket, ANN)
    for (const id of [young, kept.conversationId, 'conv_none']) {
      both.news.length = 0
      expect(await told(both.other.delete(id, by(person('eve', 'chat'))))).to.equal(unknown(id))
      expect(both.news).to.deep.equal(['conversations.drop'])
    }
    expect(await told(both.makes.append(ticket, TURN, ANN))).to.equal('done')
    await both.makes.end(ticket, ANN)
  })

  it('is deleted by whoever may delete everybody’s', async () => {
    await using both = await two()
    const { ticket, conversationId: id } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    expect(await told(both.other.delete(id, by(person('root', 'admin'))))).to.equal('done')
    await both.makes.end(ticket, ANN)
  })

  it('is deleted while it is being kept', async () => {
    await using both = await two()
    const { ticket, conversationId: id } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    const [, deleted] = await Promise.all([both.makes.append(ticket, TURN, ANN), told(both.other.delete(id, ANN))])
    expect(deleted).to.equal('done')
    await both.makes.end(ticket, ANN)
    expect(await told(both.makes.get(id, ANN))).to.equal(unknown(id))
  })
})
