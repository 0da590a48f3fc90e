import { definePlugin, type Scope } from '@svc/core'
import { JobKinds, Jobs, NodeBus, Store } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { ctx, JOBS, Network, openStore } from './support.ts'

const COUNT = 20
/** Without a message, a worker looks once a second. */
const LOOKS_MS = 1_000

/** Messages of each process reach the others; how many there were. */
class Bus {
  published = 0
  readonly #taps = new Map<string, (topic: string) => Promise<unknown>>()

  plugin(name: string) {
    return definePlugin({
      provides: NodeBus,
      setup: scope => {
        this.#taps.set(name, topic => scope.hooks.message({ from: name, topic, message: null }, ctx))
        return {
          join: async () => {},
          leave: async () => {},
          members: async () => [],
          publish: async topic => {
            this.published += 1
            for (const [other, tap] of this.#taps) if (other !== name) await tap(topic)
          },
          async *call() {},
          acquire: async () => true,
          release: async () => {},
        }
      },
    })
  }
}

describe('jobs of several processes', () => {
  it('wake the workers of others where this one has no room, and not where it has', async () => {
    await using storeHost = await openStore('store-memory')
    const [network, bus, scopes] = [new Network(), new Bus(), [] as Scope[]]
    const open = (serverId: string, config: object) =>
      testHost([JOBS], {
        serverId,
        config: { jobs: { drain_s: 0, ...config } },
        give: [
          { name: 'test:store', use: definePlugin({ provides: Store, setup: () => storeHost.service(Store) }) },
          { name: 'test:peers', use: network.plugin(serverId, () => {}) },
          { name: 'test:bus', use: bus.plugin(serverId) },
          { name: 'test:kinds', use: definePlugin({ setup: scope => void scopes.push(scope) }) },
        ],
      })
    await using serving = await open('serving', { execute: false })
    await using executing = await open('executing', {})
    const kind = {
      description: 'A job of a test',
      async *run() {
        yield { type: 'result' as const, value: 1 }
      },
    }
    for (const scope of scopes) scope.add(JobKinds, 'quick', kind)
    const each = async (jobs: Jobs) => {
      const began = performance.now()
      for (let at = 0; at < COUNT; at++) {
        const { id } = await jobs.add({ kind: 'quick' }, ctx)
        expect((await jobs.settled(id, 20_000, ctx)).state).to.equal('completed')
      }
      return (performance.now() - began) / COUNT
    }
    expect(await each(serving.service(Jobs)), 'milliseconds of a job').to.be.below(LOOKS_MS / 2)
    expect(bus.published).to.be.within(1, COUNT)
    bus.published = 0
    await each(executing.service(Jobs))
    expect(bus.published).to.equal(0)
  }).timeout(60_000)
})
