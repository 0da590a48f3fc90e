import { type CallContext, codeOf, type Log, redactText } from '@svc/core'
import type { CacheStats, Redis, RedisReply } from '@svc/core/contracts'
import { type Area, bytesOf, digest, type Entries } from '@svc/storage-kit/cache'

// Each cache has three keys: the values by the digest of their key, each after its bytes and ":"; the ends of the entries in Unix
// milliseconds, which are their order; the bytes of all.

const BEGIN = `
local values, ends, bytes = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`

/** Functions for scripts that write. Redis can have evicted one of the keys: then the rest is of no use. */
const WRITE = `${BEGIN}
if redis.call('HLEN', values) ~= redis.call('ZCARD', ends) or redis.call('EXISTS', values) ~= redis.call('EXISTS', bytes) then
  redis.call('UNLINK', values, ends, bytes)
end
local function remove(entry)
  local value = redis.call('HGET', values, entry)
  if not value then return end
  local size = tonumber(string.match(value, '^%d+'))
  -- while the memory is full, Redis refuses to write a number, but not to delete all
  if type(redis.pcall('DECRBY', bytes, size)) == 'table' then return redis.call('UNLINK', values, ends, bytes) end
  redis.call('HDEL', values, entry)
  redis.call('ZREM', ends, entry)
  if redis.call('ZCARD', ends) == 0 then redis.call('DEL', bytes) end
end
local function removeExpired()
  for _, entry in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now)) do remove(entry) end
end
`

const GET = `${BEGIN}
local ends = redis.call('ZSCORE', ends, ARGV[1])
if not ends or tonumber(ends) <= now then return nil end
local value = redis.call('HGET', values, ARGV[1])
return value and string.sub(value, string.find(value, ':', 1, true) + 1)
`

/** ARGV: entry, value, bytes, lifetime, most entries, most bytes. The entries that were written first make room. */
const PUT = `${WRITE}
local entry, size, ms, most = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), { tonumber(ARGV[5]), tonumber(ARGV[6]) }
remove(entry)
removeExpired()
redis.call('HSET', values, entry, ARGV[3] .. ':' .. ARGV[2])
redis.call('ZADD', ends, now + ms, entry)
redis.call('INCRBY', bytes, size)
while redis.call('ZCARD', ends) > most[1] or tonumber(redis.call('GET', bytes)) > most[2] do
  local first = redis.call('ZRANGE', ends, 0, 1)
  remove(first[1] == entry and first[2] or first[1])
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ms) end
return 1
`

const DELETE = `${WRITE}
remove(ARGV[1])
return 1
`

const CLEAR = `redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3]) return 1`

const STATS = `${WRITE}
removeExpired()
return { redis.call('ZCARD', ends), tonumber(redis.call('GET', bytes) or '0') }
`

interface RedisEntriesOptions {
  readonly redis: Redis
  readonly log: Log
}

/** Entries in Redis, which all servers of a cluster share. A full cache drops the entries that were written first. */
export class RedisEntries implements Entries {
  readonly #redis: Redis
  readonly #log: Log

  constructor({ redis, log }: RedisEntriesOptions) {
    this.#redis = redis
    this.#log = log
  }

  async get(area: Area, key: string, ctx: CallContext): Promise<string | undefined> {
    const found = await this.#orElse(this.#run(GET, area, [entryOf(key)], ctx), null, 'read')
    return typeof found === 'string' ? found : undefined
  }

  async put(area: Area, key: string, text: string, ctx: CallContext): Promise<boolean> {
    const bytes = bytesOf(key, text)
    const entry = entryOf(key)
    // Redis keeps no secret in clear; an earlier value would be wrong
    if (bytes > area.maxBytes || redactText(text) !== text)
      return this.#orElse(
        this.#run(DELETE, area, [entry], ctx).then(() => false),
        false,
        'delete'
      )
    const args = [entry, text, bytes, area.ttlMs, area.maxEntries, area.maxBytes]
    const isKept = await this.#orElse(this.#run(PUT, area, args, ctx), 0, 'write')
    return isKept === 1
  }

  async delete(area: Area, key: string, ctx: CallContext): Promise<void> {
    await this.#run(DELETE, area, [entryOf(key)], ctx)
  }

  async clear(area: Area, ctx: CallContext): Promise<void> {
    await this.#run(CLEAR, area, [], ctx)
  }

  async stats(area: Area, ctx: CallContext): Promise<CacheStats> {
    const [entries, bytes] = (await this.#orElse(this.#run(STATS, area, [], ctx), [0, 0], 'count')) as [number, number]
    return { entries, bytes, scope: 'cluster' }
  }

  #run(script: string, { id }: Area, args: readonly (string | number)[], ctx: CallContext): Promise<RedisReply> {
    const keys = ['values', 'ends', 'bytes'].map(part => `cache:${id}:${part}`)
    return this.#redis.run(script, keys, args, ctx)
  }

  /** Does without Redis while it fails. An abort is no such failure. */
  async #orElse<T>(work: Promise<T>, otherwise: T, what: string): Promise<T> {
    try {
      return await work
    } catch (err) {
      if (!codeOf(err)?.startsWith('STORE_')) throw err
      this.#log.debug({ err }, `failed to ${what} entries of a cache in Redis`)
      return otherwise
    }
  }
}

const entryOf = (key: string): string => digest([key])
