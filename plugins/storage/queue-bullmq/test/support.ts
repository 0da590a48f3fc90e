import { definePlugin, systemContext } from '@svc/core'
import { Checks, Peers, Redis, RunQueue, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { RUN_SPACE } from '@svc/storage-kit/run-leases'
import { type RunQueueSubject, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { Jobs } from '../src/jobs.ts'
import { BullQueue, type QueueOptions } from '../src/queue.ts'

export const ctx = systemContext(new AbortController().signal, 'test')

const REDIS = { name: '@svc/plugin-redis', use: pluginFolder('redis') }
const QUEUE = { name: '@svc/plugin-queue-bullmq', use: new URL('..', import.meta.url) }

let clusters = 0
/** A cluster that no other test uses. */
const newCluster = (): string => `queue${process.pid}-${++clusters}`

/** Where the workers of a test find each other. */
export interface Shared {
  readonly cluster: string
  /** The section `redis`. */
  readonly redis: object
  readonly store: Store
}

/** A store in memory that outlives the workers. */
export async function openShared(redis: object): Promise<Shared & AsyncDisposable> {
  const host = await testHost([{ name: '@svc/plugin-store-memory', use: pluginFolder('store-memory') }], { strict: false })
  return { cluster: newCluster(), redis, store: host.service(Store), [Symbol.asyncDispose]: () => host.close() }
}

const ALONE: Peers = {
  broadcast: async () => {},
  metrics: async () => [],
  acquire: async () => true,
  release: async () => {},
  self: async () => 'only',
  async *ask() {},
}

/** A host with the queue, as a worker of a server of its own; `gone` reports another one to it. */
export async function openWorker(serverId: string, { cluster, redis, store }: Shared) {
  const reported = Promise.withResolvers<(holder: string) => Promise<unknown>>()
  const peers = definePlugin({
    provides: Peers,
    setup(scope) {
      reported.resolve(holder => scope.hooks.workerExit({ worker: holder.slice(0, -1), node: 'n', holder }, ctx))
      return ALONE
    },
  })
  const host = await testHost([REDIS, QUEUE], {
    serverId,
    clusterId: cluster,
    config: { redis },
    strict: false,
    give: [
      { name: 'test:store', use: definePlugin({ provides: Store, setup: () => store }) },
      { name: 'test:peers', use: peers },
    ],
  })
  const health = () => host.slot(Checks).get('run_queue')!.probe(ctx)
  return { host, queue: host.service(RunQueue), store, health, gone: await reported.promise }
}

/** A queue over Redis and a store, with the given times. `vanish` ends all that it does, without a last word. */
export async function openQueue(
  name: string,
  { cluster, redis, store }: Shared,
  times: Pick<QueueOptions, 'claimMs' | 'lateMs'> & Partial<Pick<QueueOptions, 'bus'>> = {}
) {
  const dying = new AbortController()
  const lasting = systemContext(dying.signal, 'test')
  const host = await testHost([REDIS], { clusterId: cluster, config: { redis }, strict: false })
  await openSpace(store, RUN_SPACE, {}, ctx)
  const holder = `${name}/`
  const { log } = host
  const lockMs = times.claimMs ?? 30_000
  const jobs = await Jobs.open({ redis: host.service(Redis), node: name, holder, lockMs, log, lasting })
  const queue = new BullQueue({ bus: undefined, ...times, jobs, store, holder, node: name, log, lasting })
  queue.begin()
  const vanish = async () => {
    queue.end()
    dying.abort(new Error('lost'))
  }
  return {
    queue,
    jobs,
    store,
    redis: host.service(Redis),
    node: name,
    vanish,
    async [Symbol.asyncDispose]() {
      await vanish()
      await jobs.close().catch(() => {})
      await host.close()
    },
  }
}

/** Two workers for `runQueueKit`. */
export async function openTwo(redis: object): Promise<RunQueueSubject> {
  const shared = await openShared(redis)
  const [one, two] = [await openWorker('one', shared), await openWorker('two', shared)]
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
      await shared[Symbol.asyncDispose]()
    },
  }
}

/** Two queues whose claims expire after a second. */
export async function openBrief(redis: object): Promise<RunQueueSubject> {
  const stack = new AsyncDisposableStack()
  const shared = stack.use(await openShared(redis))
  const one = stack.use(await openQueue('one', shared, { claimMs: 1_000 }))
  const two = stack.use(await openQueue('two', shared, { claimMs: 1_000 }))
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
