import { NodeBus, PeerAnswers, Peers, type WorkerMetrics } from '@svc/core/contracts'
import { answerNotPermitted, membershipNotPermitted } from './errors.ts'
import { LONGEST, prefixOf } from './granted-store.ts'

/** An isolated plugin, and the slot items that it has added, as `slot/name`. */
export interface PeerGrant {
  readonly plugin: string
  readonly hasAdded: (item: string) => boolean
}

/**
 * The services that connect workers, restricted to the plugin's own topics, permits, answers and metrics. Topics and permits get a
 * prefix that no other plugin can write, so those of other plugins do not exist for it. Returns any other service as it is.
 */
export function grantedPeers(grant: PeerGrant): (name: string, service: object) => object {
  const restricted: Readonly<Record<string, (service: object) => object>> = {
    [Peers.name]: service => ownPeers(service as Peers, grant),
    [NodeBus.name]: service => ownBus(service as NodeBus, grant),
  }
  return (name, service) => (Object.hasOwn(restricted, name) ? restricted[name]!(service) : service)
}

const ownPeers = (peers: Peers, { plugin, hasAdded }: PeerGrant): Peers => ({
  broadcast: (topic, message, ctx) => peers.broadcast(prefixOf(plugin) + topic, message, ctx),
  metrics: async ctx => (await peers.metrics(ctx)).map(metrics => ownMetrics(plugin, metrics)),
  acquire: (name, limit, ctx) => peers.acquire(prefixOf(plugin) + name, limit, ctx),
  release: (name, ctx) => peers.release(prefixOf(plugin) + name, ctx),
  self: ctx => peers.self(ctx),
  async *ask(worker, topic, message, ctx) {
    checkAnswer(plugin, topic, hasAdded)
    yield* peers.ask(worker, topic, message, ctx)
  },
})

const ownBus = (bus: NodeBus, { plugin, hasAdded }: PeerGrant): NodeBus => ({
  // the host itself is the member
  async join() {
    throw membershipNotPermitted(plugin)
  },
  async leave() {
    throw membershipNotPermitted(plugin)
  },
  members: ctx => bus.members(ctx),
  publish: (topic, message, ctx) => bus.publish(prefixOf(plugin) + topic, message, ctx),
  async *call(worker, topic, message, ctx) {
    checkAnswer(plugin, topic, hasAdded)
    yield* bus.call(worker, topic, message, ctx)
  },
  acquire: (name, limit, ctx) => bus.acquire(prefixOf(plugin) + name, limit, ctx),
  release: (name, ctx) => bus.release(prefixOf(plugin) + name, ctx),
})

/** Answers of other plugins can do what only the host may do. Throws NOT_PERMITTED. */
function checkAnswer(plugin: string, topic: unknown, hasAdded: PeerGrant['hasAdded']): void {
  if (!hasAdded(`${PeerAnswers.name}/${String(topic)}`)) throw answerNotPermitted(plugin, String(topic).slice(0, LONGEST))
}

/** What a tap of an isolated plugin sees of the value of a hook, and what it can change. */
export interface HookView {
  /** The part that the tap gets. Absent: nothing in it is the plugin's own, so the tap is not called. */
  shown(value: unknown): unknown
  /** The value of the hook, with the part that the tap has returned. */
  merged(value: unknown, returned: unknown): unknown
}

/** The view of a hook of the services that connect workers. Absent: the hook has one view for all plugins. */
export function peerHookView(hook: string, plugin: string): HookView | undefined {
  const views: Readonly<Record<string, HookView>> = {
    [Peers.hooks.message.id]: named('topic', plugin),
    [NodeBus.hooks.message.id]: named('topic', plugin),
    [Peers.hooks.reclaim.id]: named('name', plugin),
    [Peers.hooks.inherit.id]: { shown: value => ownMetrics(plugin, value as WorkerMetrics), merged: value => value },
    [Peers.hooks.metrics.id]: {
      shown: value => ownMetrics(plugin, value as WorkerMetrics),
      merged: (value, returned) => ({ ...(value as WorkerMetrics), ...partOf(plugin, Object(returned) as WorkerMetrics) }),
    },
  }
  return Object.hasOwn(views, hook) ? views[hook] : undefined
}

/** Only values with a name of the plugin, without its prefix. */
const named = (key: 'topic' | 'name', plugin: string): HookView => ({
  shown(value) {
    const { [key]: name } = value as Readonly<Record<string, unknown>>
    const prefix = prefixOf(plugin)
    return typeof name === 'string' && name.startsWith(prefix)
      ? { ...(value as object), [key]: name.slice(prefix.length) }
      : undefined
  },
  merged: value => value,
})

/** Members that are facts about the worker: a plugin with such a name has no metrics. */
const FACTS: readonly string[] = ['ended', 'generation']

/** The metrics of this plugin alone. */
const partOf = (plugin: string, metrics: WorkerMetrics): WorkerMetrics =>
  Object.hasOwn(metrics, plugin) && !FACTS.includes(plugin) ? { [plugin]: metrics[plugin] } : {}

/** The metrics of this plugin alone, and the facts about the worker. */
const ownMetrics = (plugin: string, metrics: WorkerMetrics): WorkerMetrics =>
  Object.fromEntries(Object.entries(metrics).filter(([key]) => key === plugin || FACTS.includes(key)))
