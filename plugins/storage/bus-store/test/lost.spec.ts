import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, definePlugin, svcError, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { newNodeBusSeen, nodeBusProbe, testHost } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { StoreBus } from '../src/bus.ts'
import { createPosts } from '../src/posts.ts'
import { POSTS, SPACE } from '../src/space.ts'

const LOST_MS = 2_000
const ctx = systemContext(new AbortController().signal, 'test')

async function openStore() {
  const host = await testHost([{ name: '@svc/plugin-store-memory', use: pluginFolder('store-memory') }], { strict: false })
  await openSpace(host.service(Store), SPACE, {}, ctx)
  return { store: host.service(Store), [Symbol.asyncDispose]: () => host.close() }
}

async function becomes(what: string, holds: () => unknown): Promise<void> {
  for (let tries = 0; tries < 2_000 && !(await holds()); tries++) await sleep(5)
  expect(await holds(), what).to.equal(true)
}

/** A host with a member of the bus. */
async function openMember(store: Store, worker: string) {
  const seen = newNodeBusSeen()
  const probe = nodeBusProbe(seen)
  const bus = definePlugin({
    requires: { answers: PeerAnswers },
    provides: NodeBus,
    setup: ({ hooks, log, signal }, { answers }) =>
      new StoreBus({ store, self: worker, node: worker, answers, hooks, lostMs: LOST_MS, log, lasting: systemContext(signal) }),
  })
  const taps = definePlugin({
    requires: { bus: NodeBus },
    setup(scope) {
      scope.tap(NodeBus.hooks.message, probe.message)
      scope.tap(NodeBus.hooks.joined, probe.joined)
      scope.tap(NodeBus.hooks.gone, probe.gone)
      scope.tap(NodeBus.hooks.missed, probe.missed)
    },
  })
  const give = [
    { name: 'test:bus', use: bus },
    { name: 'test:taps', use: taps },
  ]
  const host = await testHost([], { strict: false, give })
  return { bus: host.service(NodeBus), seen, [Symbol.asyncDispose]: () => host.close() }
}

describe('a member of the bus that others took for lost', () => {
  it('joins again when the store answers it, also if the first tries fail', async () => {
    await using opened = await openStore()
    const { store } = opened
    let [isCut, failures] = [false, 0]
    const down = () => svcError('STORE_UNAVAILABLE', 'the line is cut', { details: { retryable: true }, hint: 'Wait' })
    const flaky: Store = {
      ...Object.fromEntries(Object.keys(Store.methods).map(name => [name, Reflect.get(store, name).bind(store)])),
      async renew(...args) {
        if (isCut) throw down()
        return store.renew(...args)
      },
      async acquire(...args) {
        if (args[0] === 'bus/b' && failures > 0) {
          failures -= 1
          throw down()
        }
        return store.acquire(...args)
      },
    } as Store
    await using a = await openMember(store, 'a')
    await using b = await openMember(flaky, 'b')
    await a.bus.join(null, ctx)
    await b.bus.join({ roles: ['http'] }, ctx)
    ;[isCut, failures] = [true, 2]
    await becomes('the report of the loss', () => a.seen.gone.length === 1)
    const before = a.seen.joined.length
    isCut = false
    await becomes('the return', () => a.seen.joined.length > before)
    expect(a.seen.joined.at(-1)).to.deep.equal({ worker: 'b', node: 'b', facts: { roles: ['http'] } })
    await becomes('the report of missed messages', () => b.seen.missed.length === 1)
    expect([a.seen.missed, b.seen.missed]).to.deep.equal([[], [undefined]])
    await b.bus.publish('news', 1, ctx)
    await becomes('its message', () => a.seen.messages.length === 1)
    await sleep(2 * LOST_MS)
    expect((await a.bus.members(ctx)).map(({ worker }) => worker)).to.deep.equal(['a', 'b'])
    await b.bus.leave(ctx)
    await becomes('its end', () => a.seen.gone.length === 2)
    expect(await b.bus.publish('news', 1, ctx).catch(codeOf)).to.equal('BUS_NOT_JOINED')
  })
})

describe('the messages of the bus', () => {
  const rows = async (store: Store) => {
    const all = []
    for (let cursor: string | undefined; ; ) {
      const page = await store.range(POSTS, { limit: 1_000, ...(cursor === undefined ? {} : { cursor }) }, ctx)
      all.push(...page.records.map(({ value }) => (value as { from: string }).from))
      cursor = page.next
      if (cursor === undefined) return all
    }
  }

  it('are deleted by their sender after a while, however many they are', async () => {
    await using opened = await openStore()
    const posts = createPosts(opened.store, 'a', ctx)
    await Promise.all(Array.from({ length: 2_500 }, (_, at) => posts.send({ topic: 't', message: at }, ctx)))
    await posts.prune(Date.now() + 61_000)
    expect(await rows(opened.store)).to.deep.equal([])
  })

  it('are not deleted by a worker whose clock is ahead, unless their sender is gone for long', async () => {
    await using opened = await openStore()
    await createPosts(opened.store, 'a', ctx).send({ topic: 't', message: 1 }, ctx)
    const ahead = createPosts(opened.store, 'b', ctx)
    await ahead.prune(Date.now() + 10 * 60_000)
    expect(await rows(opened.store)).to.deep.equal(['a'])
    await ahead.prune(Date.now() + 2 * 3_600_000)
    expect(await rows(opened.store)).to.deep.equal([])
  })
})
