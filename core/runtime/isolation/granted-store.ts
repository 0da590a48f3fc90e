import { matchesPattern } from '@svc/core'
import { Counts, type RefusalKind, type Space, Store, type StoreOp, TextIndex } from '@svc/core/contracts'
import { holdersNotPermitted, jobLeaseNotPermitted, notInSpaces, spaceNotPermitted } from './errors.ts'

/** Spaces by name, with `*` for several names. */
export interface SpaceGrant {
  readonly plugin: string
  readonly spaces: readonly string[]
  /** Counts and logs a refused space, collection or log. */
  readonly refused: (kind: RefusalKind, what: string) => Promise<void>
}

type Kind = 'space' | 'collection' | 'log'

/** Maximum length of a refused name in an error. */
export const LONGEST = 100

/**
 * The services of a store, restricted to the granted spaces, and of these to the collections and logs that the plugin has opened.
 * Leases and counts are the plugin's own: they have names of no space, so those of other plugins do not exist for it. Returns any
 * other service as it is. Throws NOT_PERMITTED.
 */
export function grantedServices(grant: SpaceGrant): (name: string, service: object) => object {
  const opened = new Map<string, Space>()
  const restricted: Readonly<Record<string, (service: object) => object>> = {
    [Store.name]: service => grantedStore(service as Store, grant, opened),
    [Counts.name]: service => ownCounts(service as Counts, grant.plugin),
    [TextIndex.name]: service => grantedTexts(service as TextIndex, grant, opened),
  }
  return (name, service) => (Object.hasOwn(restricted, name) ? restricted[name]!(service) : service)
}

/** Counts under names of the plugin. */
const ownCounts = (counts: Counts, plugin: string): Counts => ({
  count: async (key, windows, ctx) => counts.count(prefixOf(plugin) + key, windows, ctx),
})

/** Searches in the collections that the plugin has opened. */
const grantedTexts = (texts: TextIndex, { plugin, refused }: SpaceGrant, opened: ReadonlyMap<string, Space>): TextIndex => ({
  async search(collection, query, ctx) {
    const isOpen = opened.values().some(({ collections = {} }) => Object.hasOwn(collections, collection))
    if (isOpen) return texts.search(collection, query, ctx)
    const shown = String(collection).slice(0, LONGEST)
    await refused('spaces', `${shown} (collection)`)
    throw notInSpaces(plugin, 'collection', shown)
  },
})

function grantedStore(store: Store, { plugin, spaces, refused }: SpaceGrant, opened: Map<string, Space>): Store {
  const known: Readonly<Record<Kind, (name: string) => boolean>> = {
    space: name => opened.has(name),
    collection: name => opened.values().some(({ collections = {} }) => Object.hasOwn(collections, name)),
    log: name => opened.values().some(({ logs = [] }) => logs.includes(name)),
  }
  const refuse = async (kind: Kind, name: unknown): Promise<never> => {
    const shown = String(name).slice(0, LONGEST)
    await refused('spaces', kind === 'space' ? shown : `${shown} (${kind})`)
    throw kind === 'space' ? spaceNotPermitted(plugin, shown) : notInSpaces(plugin, kind, shown)
  }
  const check = async (kind: Kind, name: unknown) => {
    if (typeof name !== 'string' || !known[kind](name)) await refuse(kind, name)
  }
  const isGranted = (name: unknown) => typeof name === 'string' && spaces.some(word => matchesPattern(word, name))
  return {
    async open(space, ctx) {
      const { name } = Object(space) as Space
      if (!isGranted(name)) await refuse('space', name)
      const result = await store.open(space, ctx)
      opened.set(name, space)
      return result
    },
    async get(collection, key, ctx) {
      await check('collection', collection)
      return store.get(collection, key, ctx)
    },
    async range(collection, query, ctx) {
      await check('collection', collection)
      return store.range(collection, query, ctx)
    },
    async read(log, id, query, ctx) {
      await check('log', log)
      return store.read(log, id, query, ctx)
    },
    async batch(ops, options, ctx) {
      for (const op of ops) await check(...targetOf(op))
      const { fence, ...others } = options
      return store.batch(ops, fence ? { ...others, fence: isOfJob(fence.lease) ? fence : own(plugin, fence) } : others, ctx)
    },
    async *watch(collection, ctx) {
      await check('collection', collection)
      yield* store.watch(collection, ctx)
    },
    probe: ctx => store.probe(ctx),
    ...ownNames(store, plugin),
  }
}

/** What an operation changes. The store rejects other operations, so none may pass. */
function targetOf(op: StoreOp): [Kind, unknown] {
  const { op: kind, ...at } = Object(op) as Record<string, unknown>
  if (kind === 'put' || kind === 'delete') return ['collection', at.collection]
  if (kind === 'append' || kind === 'drop') return ['log', at.log]
  return ['space', kind === 'migrated' ? at.space : undefined]
}

/** Whether it is the lease of a job (`JobTask.fence`). A fence can only make a batch fail, so a plugin can use those of its jobs. */
const isOfJob = (lease: unknown): boolean => typeof lease === 'string' && lease.startsWith('job/')

/** The beginning of the names of leases, counts, topics and permits of a plugin. No plugin's is the beginning of another's. */
export const prefixOf = (plugin: string) => `plugin:${plugin.replaceAll(/[%:]/g, encodeURIComponent)}:`
const own = <T extends { readonly lease: string }>(plugin: string, lease: T): T => ({
  ...lease,
  lease: prefixOf(plugin) + lease.lease,
})

/** Leases and counts under names of the plugin. */
function ownNames(store: Store, plugin: string) {
  const named = <T extends { readonly lease: string }>(lease: T): T => ({
    ...lease,
    lease: lease.lease.slice(prefixOf(plugin).length),
  })
  return {
    async acquire(lease, request, ctx) {
      if (isOfJob(lease)) throw jobLeaseNotPermitted(plugin)
      return named(await store.acquire(prefixOf(plugin) + lease, request, ctx))
    },
    renew: async (lease, ttlMs, ctx) => named(await store.renew(own(plugin, lease), ttlMs, ctx)),
    release: async (lease, ctx) => store.release(own(plugin, lease), ctx),
    // The names of holders are not the plugin's own, so that svc can release its leases when a worker dies.
    async releaseHolder() {
      throw holdersNotPermitted(plugin)
    },
  } satisfies Pick<Store, 'acquire' | 'renew' | 'release' | 'releaseHolder'>
}
