import { definePlugin, type Scope, svcError, systemContext } from '@svc/core'
import { type JobKind, JobKinds, Jobs, Peers, Store } from '@svc/core/contracts'
import { type JobsSubject, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

export const ctx = systemContext(new AbortController().signal, 'test')
export const JOBS = { name: '@svc/plugin-jobs', use: new URL('..', import.meta.url) }
/** The plugin that adds the kinds of the tests. */
const KINDS = 'test:kinds'

/** The workers of one test server: messages of one reach all. */
export class Network {
  readonly #taps = new Set<(topic: string, message: unknown) => Promise<unknown>>()

  plugin(serverId: string, reported: (gone: (holder: string) => Promise<unknown>) => void) {
    return definePlugin({
      provides: Peers,
      setup: scope => {
        reported(holder => scope.hooks.workerExit({ worker: holder.slice(0, -1), node: 'n', holder }, ctx))
        const receive = (topic: string, message: unknown) => scope.hooks.message({ topic, message: message as never }, ctx)
        this.#taps.add(receive)
        scope.defer(() => this.#taps.delete(receive))
        return {
          broadcast: async (topic, message) => void (await Promise.all([...this.#taps].map(tap => tap(topic, message)))),
          metrics: async () => [],
          acquire: async () => true,
          release: async () => {},
          self: async () => serverId,
          async *ask() {},
        }
      },
    })
  }
}

/** A process: a host with the jobs plugin over a store. */
export async function openProcess(serverId: string, store: Store, { network = new Network(), config = {} } = {}) {
  const gone = Promise.withResolvers<(holder: string) => Promise<unknown>>()
  const kinds = Promise.withResolvers<Scope>()
  const host = await testHost([JOBS], {
    serverId,
    strict: true,
    config: { jobs: { drain_s: 0, ...config } },
    give: [
      { name: 'test:store', use: definePlugin({ provides: Store, setup: () => store }) },
      { name: 'test:peers', use: network.plugin(serverId, gone.resolve) },
      { name: KINDS, use: definePlugin({ setup: scope => kinds.resolve(scope) }) },
    ],
  })
  const scope = await kinds.promise
  return {
    host,
    jobs: host.service(Jobs),
    gone: await gone.promise,
    add: (name: string, kind: JobKind) => scope.add(JobKinds, name, kind),
  }
}

/** A store whose process is dead can still write what it was about to write, but takes nothing. */
function mortal(store: Store) {
  const state = { isDead: false }
  const mortalStore: Store = Object.create(store, {
    acquire: {
      value: (...args: Parameters<Store['acquire']>) =>
        state.isDead ? Promise.reject(svcError('LEASE_BUSY', 'this process is dead')) : store.acquire(...args),
    },
  }) as Store
  return { mortalStore, state }
}

export async function openTwo(first: Store, second: Store, close: () => Promise<unknown>): Promise<JobsSubject> {
  const network = new Network()
  const { mortalStore, state } = mortal(first)
  const one = await openProcess('one', bound(mortalStore), { network })
  const two = await openProcess('two', second, { network })
  return {
    jobs: one.jobs,
    other: two.jobs,
    store: second,
    plugin: KINDS,
    addKind(name, kind, to) {
      if (to !== 'other') one.add(name, kind)
      if (to !== 'jobs') two.add(name, kind)
    },
    async kill() {
      state.isDead = true
      await second.releaseHolder('one.0/', ctx)
      await two.gone('one.0/')
    },
    drain: () => one.host.close(),
    async close() {
      await Promise.all([one.host.close(), two.host.close()])
      await close()
    },
  }
}

/** The same store with its methods bound. */
function bound(store: Store): Store {
  const methods = Object.keys(Store.methods) as (keyof Store)[]
  return Object.fromEntries(
    methods.map(name => [name, (store[name] as (...args: unknown[]) => unknown).bind(store)])
  ) as unknown as Store
}

/** A store in a host of its own. */
export const openStore = (name: string, config = {}) =>
  testHost([{ name: `@svc/plugin-${name}`, use: pluginFolder(name) }], { config, strict: false })
