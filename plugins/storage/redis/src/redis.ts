import { createHash } from 'node:crypto'
import type { CallContext, Log } from '@svc/core'
import type { Check, CheckReport, Redis, RedisArg, RedisReply } from '@svc/core/contracts'
import { createNotices } from '@svc/storage-kit/follow'
import type { Redis as Client } from 'ioredis'
import { Connection, type ConnectionOptions } from './connection.ts'
import { isMisplaced, isScriptMissing, lost, redisError } from './errors.ts'

/** What an eviction loses, by the use of Redis. */
const EVICTED = { counts: 'hits of limits', queue: 'jobs of runs' } as const
type MustKeep = keyof typeof EVICTED

export interface RedisOptions {
  readonly connection: ConnectionOptions
  /** Reads the prefix of all keys and channels, which never changes. Nothing is sent before. */
  readonly prefix: () => Promise<string>
  /** The uses of Redis whose keys should not be evicted. */
  readonly mustKeep: readonly MustKeep[]
  readonly log: Log
}

type Notices = ReturnType<typeof createNotices>

/** The service: one connection for scripts, and one that listens once a plugin does. */
export class RedisService implements Redis, Check, AsyncDisposable {
  readonly #readPrefix: () => Promise<string>
  #prefix: Promise<string> | undefined
  readonly #commands: Connection
  readonly #listener: Connection
  readonly #listeners = new Map<string, Set<Notices>>()

  constructor({ connection, prefix, mustKeep, log }: RedisOptions) {
    this.#readPrefix = prefix
    this.#commands = new Connection(connection, 'connection to Redis', log, async client => {
      if (mustKeep.length > 0) await warnOfEviction(client, mustKeep, log, this.#commands.server)
    })
    this.#listener = new Connection(connection, 'connection that listens to Redis', log, client => this.#resubscribe(client))
  }

  /** Resolves when the first attempt to connect has ended. */
  start(): Promise<void> {
    return this.#commands.start()
  }

  async run(script: string, keys: readonly string[], args: readonly RedisArg[], ctx: CallContext): Promise<RedisReply> {
    ctx.signal.throwIfAborted()
    const prefix = await this.prefix()
    const client = await this.#commands.client()
    ctx.signal.throwIfAborted()
    try {
      return await runScript(client, script, [keys.length, ...keys.map(key => prefix + key), ...args.map(sendable)])
    } catch (error) {
      if (isMisplaced(error)) client.disconnect()
      throw (error as Error).name === 'ReplyError' || isUnsent(error) ? redisError(error, this.#commands.server) : lost()
    }
  }

  prefix(): Promise<string> {
    this.#prefix ??= this.#readPrefix().catch((error: unknown) => {
      this.#prefix = undefined // the next call reads it again
      throw error
    })
    return this.#prefix
  }

  async *listen(channels: readonly string[], ctx: CallContext): AsyncGenerator<{ channel?: string; payload?: string }> {
    await this.prefix()
    const waiting = createNotices()
    const fresh = channels.filter(channel => !this.#listeners.has(channel))
    for (const channel of channels)
      this.#listeners.set(channel, (this.#listeners.get(channel) ?? new Set<Notices>()).add(waiting))
    ctx.signal.addEventListener('abort', waiting.wake, { once: true })
    try {
      void this.#listener.start()
      // a connection that opens meanwhile subscribes to all of them, and says so
      if (this.#listener.problem === undefined) await this.#subscribe(fresh, waiting)
      while (!ctx.signal.aborted) {
        yield* waiting.take()
        await waiting.some(ctx.signal)
      }
    } finally {
      ctx.signal.removeEventListener('abort', waiting.wake)
      for (const channel of channels) this.#listeners.get(channel)?.delete(waiting)
    }
  }

  /** For `/health`: svc works without Redis, though some requests can fail. */
  async probe(): Promise<CheckReport> {
    const { problem, server } = this.#commands
    if (problem === undefined) return { status: 'healthy' }
    const { message, hint } = redisError(problem, server)
    return { status: 'degraded', reason: message, code: 'REDIS_UNAVAILABLE', ...(hint === undefined ? {} : { hint }) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#commands[Symbol.asyncDispose](), this.#listener[Symbol.asyncDispose]()])
  }

  async #subscribe(channels: readonly string[], waiting: Notices): Promise<void> {
    try {
      const [prefix, client] = await Promise.all([this.prefix(), this.#listener.client()])
      if (channels.length > 0) await client.subscribe(...channels.map(channel => prefix + channel))
      waiting.add({})
    } catch {
      // the next connection subscribes
    }
  }

  async #resubscribe(client: Client): Promise<void> {
    const prefix = await this.prefix()
    client.on('message', (name: string, payload: string) => {
      const channel = name.slice(prefix.length)
      for (const waiting of this.#listeners.get(channel) ?? []) waiting.add({ channel, payload })
    })
    if (this.#listeners.size > 0) await client.subscribe(...[...this.#listeners.keys()].map(channel => prefix + channel))
    for (const waiting of new Set([...this.#listeners.values()].flatMap(set => [...set]))) waiting.add({})
  }
}

/** The policy can change with the server. A user of Redis without the right to read it gets no warning. */
async function warnOfEviction(client: Client, uses: readonly MustKeep[], log: Log, server: string): Promise<void> {
  try {
    const policy = /^maxmemory_policy:(\S+)/m.exec(await client.info('memory'))?.[1] ?? 'noeviction'
    const [lost, names] = [uses.map(use => EVICTED[use]).join(' and '), uses.join(' and ')]
    if (policy !== 'noeviction')
      log.warn({ policy }, `Redis can evict ${lost}: set maxmemory-policy to noeviction, or leave ${names} out of redis.use`)
  } catch (err) {
    if ((err as Error).name !== 'ReplyError') throw err
    log.debug({ err: redisError(err, server) }, 'failed to read the policy of eviction of Redis')
  }
}

/** The client takes no other bytes than a `Buffer`. */
const sendable = (arg: RedisArg) => (arg instanceof Uint8Array ? Buffer.from(arg.buffer, arg.byteOffset, arg.byteLength) : arg)

const digests = new Map<string, string>()

function digestOf(script: string): string {
  const known = digests.get(script)
  if (known !== undefined) return known
  const digest = createHash('sha1').update(script).digest('hex')
  digests.set(script, digest)
  return digest
}

/** Redis forgets scripts when it restarts. */
async function runScript(
  client: Client,
  script: string,
  rest: [count: number, ...(string | number | Buffer)[]]
): Promise<RedisReply> {
  try {
    return (await client.evalsha(digestOf(script), ...rest)) as RedisReply
  } catch (error) {
    if (!isScriptMissing(error)) throw error
    return (await client.eval(script, ...rest)) as RedisReply
  }
}

/** The connection was closed before the command, and not after it. */
const isUnsent = (error: unknown) => error instanceof Error && error.message.includes('enableOfflineQueue')
