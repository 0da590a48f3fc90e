import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { definePlugin, systemContext } from '@svc/core'
import { Peers, RunQueue, Store } from '@svc/core/contracts'
import { runQueueKit, type RunQueueSubject, testHost } from '@svc/testing'
import { openSpace } from '@svc/storage-kit'
import { RUN_SPACE } from '@svc/storage-kit/run-leases'
import { StoreQueue } from '@svc/storage-kit/store-queue'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const ctx = systemContext(new AbortController().signal, 'test')
const QUEUE = { name: '@svc/plugin-queue-store', use: new URL('..', import.meta.url) }

const ALONE: Peers = {
  broadcast: async () => {},
  metrics: async () => [],
  acquire: async () => true,
  release: async () => {},
  self: async () => 'only',
  async *ask() {},
}

/** A host with the queue over a store, as a process of a server of its own; `gone` tells it that another has ended. */
async function openProcess(serverId: string, store: Store) {
  const reported = Promise.withResolvers<(holder: string) => Promise<unknown>>()
  const peers = definePlugin({
    provides: Peers,
    setup(scope) {
      reported.resolve(holder => scope.hooks.workerExit({ worker: holder.slice(0, -1), node: 'n', holder }, ctx))
      return ALONE
    },
  })
  const host = await testHost([QUEUE], {
    serverId,
    strict: false,
    give: [
      { name: 'test:store', use: definePlugin({ provides: Store, setup: () => store }) },
      { name: 'test:peers', use: peers },
    ],
  })
  return { host, queue: host.service(RunQueue), gone: await reported.promise }
}

const NODES = ['one', 'two'] as const

/** Queues without hosts, whose claims expire after a second. */
async function openBrief(first: Store, second: Store, close: () => Promise<unknown>): Promise<RunQueueSubject> {
  await openSpace(first, RUN_SPACE, {}, ctx)
  await openSpace(second, RUN_SPACE, {}, ctx)
  const [queue, other] = [first, second].map(
    (store, at) => new StoreQueue({ store, holder: `w${at}/`, node: NODES[at]!, claimMs: 1_000, lasting: ctx })
  ) as [StoreQueue, StoreQueue]
  return { queue, other, nodes: NODES, kill: async () => {}, vanish: async () => {}, close }
}

async function openTwo(first: Store, second: Store, close: () => Promise<unknown>): Promise<RunQueueSubject> {
  const [head, two] = [await openProcess('one', first), await openProcess('two', second)]
  return {
    queue: head.queue,
    other: two.queue,
    nodes: NODES,
    vanish: async () => {},
    async kill() {
      await second.releaseHolder('one.0/', ctx)
      await two.gone('one.0/')
    },
    async close() {
      await Promise.all([head.host.close(), two.host.close()])
      await close()
    },
  }
}

/** A store in a host of its own. */
const openStore = (name: string, config = {}) =>
  testHost([{ name: `@svc/plugin-${name}`, use: pluginFolder(name) }], { config, strict: false })

describe('the queue of runs in a store', () => {
  describe('in memory', () => {
    const open = async ({ brief }: { brief: boolean }) => {
      const host = await openStore('store-memory')
      return (brief ? openBrief : openTwo)(host.service(Store), host.service(Store), () => host.close())
    }
    for (const testCase of runQueueKit(open)) it(testCase.title, testCase.run)
  })

  describe('in a file', () => {
    const open = async ({ brief }: { brief: boolean }) => {
      const folder = await mkdtemp(join(tmpdir(), 'svc-queue-'))
      const config = { store: { path: join(folder, 'svc.db') } }
      const [first, second] = [await openStore('store-sqlite', config), await openStore('store-sqlite', config)]
      return (brief ? openBrief : openTwo)(first.service(Store), second.service(Store), async () => {
        await Promise.all([first.close(), second.close()])
        await rm(folder, { recursive: true, force: true })
      })
    }
    for (const testCase of runQueueKit(open)) it(testCase.title, testCase.run)
  })
})
