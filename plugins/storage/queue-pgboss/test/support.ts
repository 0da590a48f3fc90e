import { definePlugin, systemContext } from '@svc/core'
import { Checks, Peers, Postgres, RunQueue, Store } from '@svc/core/contracts'
import { type RunQueueSubject, testHost } from '@svc/testing'
import { openBoss } from '../src/boss.ts'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { Jobs } from '../src/jobs.ts'
import { PgBossQueue, type QueueOptions } from '../src/queue.ts'

export const ctx = systemContext(new AbortController().signal, 'test')

const STORE = { name: '@svc/plugin-store-postgres', use: pluginFolder('store-postgres') }
const QUEUE = { name: '@svc/plugin-queue-pgboss', use: new URL('..', import.meta.url) }

/** A busy machine is slow to connect. */
const SLOW = { host: { setup_timeout_ms: 60_000 } }

let schemas = 0
/** A schema that no other test uses. */
export const newSchema = (): string => `queue_${process.pid}_${++schemas}`

const ALONE: Peers = {
  broadcast: async () => {},
  metrics: async () => [],
  acquire: async () => true,
  release: async () => {},
  self: async () => 'only',
  async *ask() {},
}

/** A host with a store in PostgreSQL and the queue, as a worker of a server of its own; `gone` reports another one to it. */
export async function openWorker(serverId: string, section: object) {
  const reported = Promise.withResolvers<(holder: string) => Promise<unknown>>()
  const peers = definePlugin({
    provides: Peers,
    setup(scope) {
      reported.resolve(holder => scope.hooks.workerExit({ worker: holder.slice(0, -1), node: 'n', holder }, ctx))
      return ALONE
    },
  })
  const host = await testHost([STORE, QUEUE], {
    serverId,
    config: { store: section, ...SLOW },
    strict: false,
    give: [{ name: 'test:peers', use: peers }],
  })
  const health = () => host.slot(Checks).get('run_queue')!.probe(ctx)
  return { host, queue: host.service(RunQueue), store: host.service(Store), health, gone: await reported.promise }
}

/** A host with a store in PostgreSQL. */
export const openStore = (section: object) => testHost([STORE], { config: { store: section, ...SLOW }, strict: false })

/** A queue over a store in a host, with the given times. `vanish` ends all that it does, without a last word. */
export async function openQueue(
  name: string,
  section: object,
  times: Pick<QueueOptions, 'claimMs' | 'lateMs'> & Partial<Pick<QueueOptions, 'bus'>> = {}
) {
  const dying = new AbortController()
  const lasting = systemContext(dying.signal, 'test')
  const host = await openStore(section)
  const [store, postgres] = [host.service(Store), host.service(Postgres)]
  const opened = await openBoss({
    send: (text, values) => postgres.runApart({ text, ...(values ? { values: values as never } : {}) }, ctx),
    storeSchema: (await postgres.schema(ctx)).slice(1, -1),
    mayMigrate: true,
    log: host.log,
  })
  const jobs = new Jobs({ ...opened, postgres, lasting })
  const queue = new PgBossQueue({ bus: undefined, ...times, jobs, store, holder: `${name}/`, node: name, log: host.log, lasting })
  queue.begin()
  const vanish = async () => {
    queue.end()
    dying.abort(new Error('lost'))
  }
  return {
    queue,
    jobs,
    store,
    postgres,
    ...opened,
    node: name,
    vanish,
    async [Symbol.asyncDispose]() {
      await vanish()
      await opened.boss.stop({ graceful: false, close: false })
      await host.close()
    },
  }
}

/** Two workers for `runQueueKit`. */
export async function openTwo(section: object): Promise<RunQueueSubject> {
  const [one, two] = [await openWorker('one', section), await openWorker('two', section)]
  return {
    queue: one.queue,
    other: two.queue,
    nodes: ['one', 'two'],
    vanish: async () => {},
    async kill() {
      await two.store.releaseHolder('one.0/', ctx)
      await two.gone('one.0/')
    },
    async close() {
      await Promise.all([one.host.close(), two.host.close()])
    },
  }
}

/** Two queues whose claims expire after a second. */
export async function openBrief(section: object): Promise<RunQueueSubject> {
  const stack = new AsyncDisposableStack()
  const one = stack.use(await openQueue('one', section, { claimMs: 1_000 }))
  const two = stack.use(await openQueue('two', section, { claimMs: 1_000 }))
  return {
    queue: one.queue,
    other: two.queue,
    nodes: ['one', 'two'],
    kill: async () => {},
    vanish: one.vanish,
    close: () => stack.disposeAsync(),
  }
}

/** Waits until a condition holds; fails after 40 s. */
export async function becomes(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 40_000; !(await holds()); await new Promise(resolve => setTimeout(resolve, 20)))
    if (Date.now() > end) throw new Error(`${what} did not happen within 40 s`)
}
