import { isTree, type Log, type CallContext } from '@svc/core'
import type { WorkerMetrics, IsolatedName, Peers } from '@svc/core/contracts'

/** Which plugins no worker of this server brings up any more. */
export interface Quarantine {
  /** Puts one there; answers when all workers know. */
  put(who: IsolatedName, ctx: CallContext): Promise<void>
  /** Yields once, when one is there. */
  watch(who: IsolatedName, ctx: CallContext): AsyncIterable<true>
  /** A worker has told something: takes over what the others have there. */
  told(topic: string, message: unknown, ctx: CallContext): Promise<void>
  /** This worker is one of the others: takes over what they have there. It serves without, too. */
  joined(ctx: CallContext): Promise<undefined>
  /** Which are there, for this worker's figures. */
  names(): readonly string[]
}

/** Under which workers, and the supervisor, tell that there is news of this. */
const TOPIC = 'isolation.quarantine'
const UNHEARD = 'this worker does not know which plugins the others keep in quarantine'

export function createQuarantine(peers: Pick<Peers, 'broadcast' | 'metrics'> | undefined, log: Log): Quarantine {
  const doors = new Map<string, PromiseWithResolvers<boolean>>()
  const shut = new Set<string>()
  const doorOf = (key: string) => {
    const door = doors.get(key) ?? Promise.withResolvers<boolean>()
    doors.set(key, door)
    return door
  }
  const shutOne = (key: string) => {
    shut.add(key)
    doorOf(key).resolve(true)
  }
  /** Workers of another generation run what may be another version; a reload lets all try again. */
  const learn = async (ctx: CallContext) => {
    const [mine, ...others] = (await peers?.metrics(ctx)) ?? []
    const alike = others.filter(one => !one.ended && one.generation === mine?.generation)
    for (const key of alike.flatMap(shutIn)) shutOne(key)
  }
  return {
    names: () => [...shut],
    async put(who, ctx) {
      shutOne(nameOf(who))
      await peers?.broadcast(TOPIC, null, ctx)
    },
    async *watch(who, { signal }) {
      const ended = Promise.withResolvers<boolean>()
      signal.addEventListener('abort', () => ended.resolve(false), { once: true })
      if (await Promise.race([doorOf(nameOf(who)).promise, ended.promise])) yield true
    },
    async told(topic, message, ctx) {
      if (topic !== TOPIC) return
      // the supervisor names those that ended workers; a worker says only that there is news
      if (Array.isArray(message)) for (const who of message as IsolatedName[]) shutOne(nameOf(who))
      else await learn(ctx)
    },
    async joined(ctx) {
      await learn(ctx).catch((err: unknown) => log.warn({ err }, UNHEARD))
      return undefined
    },
  }
}

/** A plugin that is set up for several entries of the configuration is told with each of them. */
export const nameOf = ({ plugin, instance }: IsolatedName): string =>
  instance === undefined ? plugin : `${plugin} (${instance})`

const shutIn = ({ isolation }: WorkerMetrics) => (isTree(isolation) ? (isolation.quarantined as readonly string[]) : [])
