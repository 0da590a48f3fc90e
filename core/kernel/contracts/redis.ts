import { defineService, type CallContext } from '@svc/core'

/** A reply of a script. Redis has no fractions: return them as text. */
export type RedisReply = string | number | null | readonly RedisReply[]

/** An argument of a script. Numbers arrive as text. */
export type RedisArg = string | number | Uint8Array

/** A message of a channel. One without a channel says that others can be lost. */
export interface RedisNotice {
  readonly channel?: string
  readonly payload?: string
}

/**
 * A Redis server, for plugins that use Redis itself, such as a cache. All keys and channels have the prefix of the cluster. Redis can
 * lose everything at any time, so never keep the only copy of anything in it. Most plugins use `Cache`, `Counts` or `Peers` instead.
 */
export interface Redis {
  /**
   * Runs a Lua script, which nothing else interrupts. It finds the keys in `KEYS`, with their prefix, and must use no others; a
   * channel is a key, too: `redis.call('PUBLISH', KEYS[1], ARGV[1])`. Throws STORE_UNAVAILABLE when nothing was done, also because
   * the memory of Redis is full, and STORE_UNSURE when the connection broke meanwhile. It does not try again.
   */
  run(script: string, keys: readonly string[], args: readonly RedisArg[], ctx: CallContext): Promise<RedisReply>
  /** The prefix of all keys and channels, for libraries whose scripts make the names of keys. Such a script must use it for each key. */
  prefix(ctx: CallContext): Promise<string>
  /** Listens on channels. A notice without a channel comes first, and whenever the connection was replaced. */
  listen(channels: readonly string[], ctx: CallContext): AsyncIterable<RedisNotice>
}
export const Redis = defineService<Redis>('redis', { api: 1, methods: { run: 'call', prefix: 'call', listen: 'stream' } })
