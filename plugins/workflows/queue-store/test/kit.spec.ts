import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { definePlugin, systemContext } from '@svc/core'
import { Peers, RunQueue, Store } from '@svc/core/contracts'
import { runQueueKit, type RunQueueSubject, testHost } from '@svc/testing'
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
      reported.resolve(holder => scope.hooks.workerExit({ holder }, ctx))
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

async function openTwo(first: Store, second: Store, close: () => Promise<unknown>): Promise<RunQueueSubject> {
  const [head, two] = [await openProcess('one', first), await openProcess('two', second)]
  return {
    queue: head.queue,
    other: two.queue,
    async kill() {
      await second.releaseHolder('one/', ctx)
      await two.gone('one/')
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
    const open = async () => {
      const host = await openStore('store-memory')
      return openTwo(host.service(Store), host.service(Store), () => host.close())
    }
    for (const testCase of runQueueKit(open)) it(testCase.title, testCase.run)
  })

  describe('in a file', () => {
    const open = async () => {
      const folder = await mkdtemp(join(tmpdir(), 'svc-queue-'))
      const config = { store: { path: join(folder, 'svc.db') } }
      const [first, second] = [await openStore('store-sqlite', config), await openStore('store-sqlite', config)]
      return openTwo(first.service(Store), second.service(Store), async () => {
        await Promise.all([first.close(), second.close()])
        await rm(folder, { recursive: true, force: true })
      })
    }
    for (const testCase of runQueueKit(open)) it(testCase.title, testCase.run)
  })
})
