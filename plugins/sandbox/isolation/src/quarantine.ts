import { type CallContext, type Events, isTree, type Log } from '@svc/core'
import { type IsolatedName, type Peers, PluginQuarantined, type WorkerMetrics } from '@svc/core/contracts'

/** The plugins that no worker of this server starts again until the next reload. */
export interface Quarantine {
  /** Quarantines a plugin. Resolves when all workers know. */
  put(who: IsolatedName, ctx: CallContext): Promise<void>
  /** Yields once, when the plugin is in quarantine. */
  watch(who: IsolatedName, ctx: CallContext): AsyncIterable<true>
  /** Handles a message of another worker: takes over its quarantined plugins. */
  onMessage(topic: string, message: unknown, ctx: CallContext): Promise<void>
  /** Takes over the quarantined plugins of the other workers when this worker starts. A failure is logged, and the worker serves. */
  joined(ctx: CallContext): Promise<undefined>
  /** The quarantined plugins, for the metrics of this worker. */
  names(): readonly string[]
}

/** The topic on which workers and the supervisor announce changes. */
const TOPIC = 'isolation.quarantine'
const SYNC_FAILED = 'failed to read the quarantined plugins of the other workers'

export function createQuarantine(
  peers: Pick<Peers, 'broadcast' | 'metrics'> | undefined,
  events: Pick<Events, 'publish'>,
  log: Log
): Quarantine {
  const gates = new Map<string, PromiseWithResolvers<boolean>>()
  const quarantined = new Set<string>()
  const gateOf = (key: string) => {
    const gate = gates.get(key) ?? Promise.withResolvers<boolean>()
    gates.set(key, gate)
    return gate
  }
  const add = (key: string) => {
    quarantined.add(key)
    gateOf(key).resolve(true)
  }
  /** Workers of another generation can run another version of a plugin: a reload starts all plugins again. */
  const syncWithPeers = async (ctx: CallContext) => {
    const [mine, ...others] = (await peers?.metrics(ctx)) ?? []
    const sameGeneration = others.filter(other => !other.ended && other.generation === mine?.generation)
    for (const key of sameGeneration.flatMap(quarantinedIn)) add(key)
  }
  return {
    names: () => [...quarantined],
    async put(who, ctx) {
      add(nameOf(who))
      void events.publish(PluginQuarantined, { plugin: who.plugin, instance: who.instance ?? null }, ctx)
      await peers?.broadcast(TOPIC, null, ctx)
    },
    async *watch(who, { signal }) {
      const ended = Promise.withResolvers<boolean>()
      signal.addEventListener('abort', () => ended.resolve(false), { once: true })
      if (await Promise.race([gateOf(nameOf(who)).promise, ended.promise])) yield true
    },
    async onMessage(topic, message, ctx) {
      if (topic !== TOPIC) return
      // the supervisor sends the plugins that ended workers; a worker sends no content
      if (Array.isArray(message)) for (const who of message as IsolatedName[]) add(nameOf(who))
      else await syncWithPeers(ctx)
    },
    async joined(ctx) {
      await syncWithPeers(ctx).catch((err: unknown) => log.warn({ err }, SYNC_FAILED))
      return undefined
    },
  }
}

/** The name to report: with the instance, where the configuration sets up one plugin for several entries. */
export const nameOf = ({ plugin, instance }: IsolatedName): string =>
  instance === undefined ? plugin : `${plugin} (${instance})`

const quarantinedIn = ({ isolation }: WorkerMetrics) => (isTree(isolation) ? (isolation.quarantined as readonly string[]) : [])
