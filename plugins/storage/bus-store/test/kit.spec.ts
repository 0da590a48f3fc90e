import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { definePlugin, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { type BusMemberUnderTest, newNodeBusSeen, nodeBusKit, nodeBusProbe, type NodeBusSubject, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { StoreBus } from '../src/bus.ts'
import { SPACE } from '../src/space.ts'

const LOST_MS = 1_500

/** A host with the bus over a store. `vanish` aborts all that it does, without a last word. */
async function openMember(store: Store, at: number): Promise<BusMemberUnderTest & { close(): Promise<void> }> {
  const [worker, node] = [`node${at}.boot.1`, `node${at}`]
  const seen = newNodeBusSeen()
  const probe = nodeBusProbe(seen)
  const dying = new AbortController()
  const lasting = systemContext(dying.signal, 'test')
  await openSpace(store, SPACE, {}, lasting)
  const bus = definePlugin({
    requires: { answers: PeerAnswers },
    provides: NodeBus,
    setup: (scope, { answers }) =>
      new StoreBus({ store, self: worker, node, answers, hooks: scope.hooks, lostMs: LOST_MS, log: scope.log, lasting }),
  })
  const taps = definePlugin({
    requires: { bus: NodeBus },
    setup(scope) {
      scope.tap(NodeBus.hooks.message, probe.message)
      scope.tap(NodeBus.hooks.joined, probe.joined)
      scope.tap(NodeBus.hooks.gone, probe.gone)
      scope.tap(NodeBus.hooks.missed, probe.missed)
      for (const [name, answer] of Object.entries(probe.answers)) scope.add(PeerAnswers, name, { answer })
    },
  })
  const host = await testHost([], {
    strict: false,
    give: [
      { name: 'test:bus', use: bus },
      { name: 'test:taps', use: taps },
    ],
  })
  const vanish = async () => dying.abort(new Error('lost'))
  const close = async () => {
    await vanish()
    await host.close()
  }
  return { bus: host.service(NodeBus), worker, node, seen, store, vanish, close }
}

async function openThree(stores: readonly Store[], close: () => Promise<unknown>): Promise<NodeBusSubject> {
  const members = [await openMember(stores[0]!, 1), await openMember(stores[1]!, 2), await openMember(stores[2]!, 3)] as const
  return {
    members,
    async close() {
      for (const member of members) await member.close()
      await close()
    },
  }
}

/** A store in a host of its own. */
const openStore = (name: string, config = {}) =>
  testHost([{ name: `@svc/plugin-${name}`, use: pluginFolder(name) }], { config, strict: false })

describe('the bus in a store', () => {
  describe('in memory', () => {
    const open = async () => {
      const host = await openStore('store-memory')
      const store = host.service(Store)
      return openThree([store, store, store], () => host.close())
    }
    for (const testCase of nodeBusKit(open)) it(testCase.title, testCase.run)
  })

  describe('in a file', () => {
    const open = async () => {
      const folder = await mkdtemp(join(tmpdir(), 'svc-bus-'))
      const config = { store: { path: join(folder, 'svc.db') } }
      const hosts = [
        await openStore('store-sqlite', config),
        await openStore('store-sqlite', config),
        await openStore('store-sqlite', config),
      ]
      return openThree(
        hosts.map(host => host.service(Store)),
        async () => {
          for (const host of hosts) await host.close()
          await rm(folder, { recursive: true, force: true })
        }
      )
    }
    for (const testCase of nodeBusKit(open)) it(testCase.title, testCase.run)
  })
})
