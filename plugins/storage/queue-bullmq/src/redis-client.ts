import { EventEmitter } from 'node:events'
import type { CallContext } from '@svc/core'
import type { Redis, RedisArg, RedisReply } from '@svc/core/contracts'

interface Script {
  readonly lua: string
  readonly keys: number
}

/** What BullMQ sends: keys, then arguments. */
type Arguments = readonly (RedisArg | boolean | null | undefined)[]

/** A group of scripts; BullMQ uses it to add many jobs. */
interface ScriptGroup {
  runCommand(name: string, args: Arguments): ScriptGroup
  exec(): Promise<[Error | null, RedisReply | undefined][]>
}

/**
 * The client that BullMQ runs its scripts with: the connection of this worker to Redis, which the service `Redis` has. So there is no
 * second connection, and no second place that knows the password. It has what jobs of runs need, and no blocking commands.
 */
export class RedisClient extends EventEmitter {
  /** The service waits for its connection. */
  readonly status = 'ready'
  readonly isCluster = false
  readonly options = {}
  readonly #redis: Redis
  readonly #prefix: string
  readonly #ctx: CallContext
  readonly #scripts = new Map<string, Script>()

  /** `prefix`: that of the service. */
  constructor(redis: Redis, prefix: string, ctx: CallContext) {
    super()
    this.#redis = redis
    this.#prefix = prefix
    this.#ctx = ctx
  }

  defineCommand(name: string, { numberOfKeys, lua }: { readonly numberOfKeys: number; readonly lua: string }): void {
    this.#scripts.set(name, { lua, keys: numberOfKeys })
  }

  async runCommand(name: string, args: Arguments): Promise<RedisReply> {
    const script = this.#scripts.get(name)
    if (!script) throw new Error(`BullMQ uses the unknown script ${name}`)
    const keys = args.slice(0, script.keys).map(key => this.#ownKey(key))
    return this.#redis.run(script.lua, keys, args.slice(script.keys).map(argumentOf), this.#ctx)
  }

  /** Sends its scripts together, each of which is a step of its own: svc repairs what is left half done. */
  multi(): ScriptGroup {
    const calls: (() => Promise<RedisReply>)[] = []
    const group: ScriptGroup = {
      runCommand: (name, args) => {
        calls.push(() => this.runCommand(name, args))
        return group
      },
      async exec() {
        const ended = await Promise.allSettled(calls.map(call => call()))
        return ended.map(end => (end.status === 'fulfilled' ? [null, end.value] : [end.reason as Error, undefined]))
      },
    }
    return group
  }

  pipeline(): ScriptGroup {
    return this.multi()
  }

  /** A worker that is asked for its jobs never blocks the connection. */
  duplicate(): this {
    return this
  }

  scanStream(): never {
    throw new Error('BullMQ must not scan the keys of Redis')
  }

  async connect(): Promise<void> {}

  disconnect(): void {}

  async quit(): Promise<string> {
    return 'OK'
  }

  /** The service adds the prefix to each key. */
  #ownKey(key: Arguments[number]): string {
    if (typeof key !== 'string' || !key.startsWith(this.#prefix))
      throw new Error('BullMQ uses a key without the prefix of the cluster')
    return key.slice(this.#prefix.length)
  }
}

/** As clients of Redis send it. */
const argumentOf = (value: Arguments[number]): RedisArg => (typeof value === 'boolean' ? String(value) : (value ?? ''))
