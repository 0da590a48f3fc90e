import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, codeOf } from '@svc/core'
import type { BusMember, Redis, RedisReply } from '@svc/core/contracts'
import type { SetPermits } from '@svc/storage-kit/permits'

// The keys of the bus. `bus:members` has a field for each member, and each member a key that expires unless it renews it. Renewing and
// removing work while the memory of Redis is full; a join does not.

const MEMBERS = 'bus:members'
const aliveKey = (worker: string) => `bus:alive:${worker}`
/** The names of the permits that a worker has. */
const heldKey = (worker: string) => `bus:held:${worker}`
const permitKey = (name: string) => `bus:permit:${name}`

/** A request fails rather than wait longer. */
const PERMIT_MS = 1_000
const RETRY_MS = 5_000
const [FIRST_MS, LONGEST_MS] = [20, 500]
const RETRIED = new Set(['STORE_UNAVAILABLE', 'STORE_UNSURE'])

export const isFailureOfRedis = (error: unknown): boolean => RETRIED.has(codeOf(error) ?? '')

/** Scripts of the bus. */
export interface BusRedis {
  /** As `Redis.run`; tries again for `retryMs`. So each script must have the same result when it runs twice. */
  run(script: string, keys: readonly string[], args: readonly (string | number)[], retryMs?: number): Promise<RedisReply>
}

export const createBusRedis = (redis: Redis, lasting: CallContext): BusRedis => ({
  async run(script, keys, args, retryMs = 0) {
    const until = performance.now() + retryMs
    for (let ms = FIRST_MS; ; ms = Math.min(ms * 2, LONGEST_MS)) {
      try {
        return await redis.run(script, keys, args, lasting)
      } catch (error) {
        if (!isFailureOfRedis(error) || performance.now() + ms > until) throw error
      }
      await sleep(ms, undefined, { signal: lasting.signal, ref: false })
    }
  },
})

const JOIN = `
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('SET', KEYS[2], '1', 'PX', ARGV[3])
return 1
`
const READ = `return redis.call('HGETALL', KEYS[1])`
const RENEW = `return redis.call('EXISTS', KEYS[2]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 and redis.call('PEXPIRE', KEYS[2], ARGV[2]) or 0`
const REST = `
local rest = {}
for at, key in ipairs(KEYS) do rest[at] = redis.call('PTTL', key) end
return rest
`
/** Unless the member lives: ARGV[2] is 1 if that is known not to be so. Its permits are free already. */
const REMOVE = `
if ARGV[2] ~= '1' and redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2], KEYS[3])
return 1
`
const IS_ALIVE = `return redis.call('EXISTS', KEYS[1])`
const HELD = `return redis.call('SMEMBERS', KEYS[1])`
/** KEYS: permits of names. */
const FREE = `
for _, key in ipairs(KEYS) do redis.call('HDEL', key, ARGV[1]) end
return 1
`
/** Returns -1 unless this worker is a member, so that the numbers of all are there after Redis has lost them. */
const PERMIT = `
if redis.call('EXISTS', KEYS[3]) == 0 then return -1 end
local self, least, wanted, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local held = redis.call('HGETALL', KEYS[1])
local others = 0
for at = 1, #held, 2 do
  if held[at] ~= self then others = others + tonumber(held[at + 1]) end
end
local number = math.max(least, math.min(wanted, limit - others))
if number > 0 then
  redis.call('HSET', KEYS[1], self, number)
  redis.call('SADD', KEYS[2], ARGV[5])
else
  redis.call('HDEL', KEYS[1], self)
  redis.call('SREM', KEYS[2], ARGV[5])
end
return number
`
/** Most keys of a script. */
const PART = 500

/** A member as Redis has it. */
export interface StoredMember extends Omit<BusMember, 'worker'> {
  /** Milliseconds since it renewed its membership; undefined if it no longer does so. */
  readonly ageMs: number | undefined
}

/** The members in Redis. */
export class StoredMembers {
  readonly #redis: BusRedis
  readonly #lostMs: number

  constructor(redis: BusRedis, lostMs: number) {
    this.#redis = redis
    this.#lostMs = lostMs
  }

  async join({ worker, node, facts }: BusMember): Promise<void> {
    const args = [worker, JSON.stringify({ node, facts }), this.#lostMs]
    await this.#redis.run(JOIN, [MEMBERS, aliveKey(worker)], args, RETRY_MS)
  }

  /** False if the member is not there any more. */
  async renew(worker: string): Promise<boolean> {
    return (await this.#redis.run(RENEW, [MEMBERS, aliveKey(worker)], [worker, this.#lostMs])) === 1
  }

  async read(): Promise<Map<string, StoredMember>> {
    const all = (await this.#redis.run(READ, [MEMBERS], [])) as readonly string[]
    const workers = all.filter((_, at) => at % 2 === 0)
    const rest: number[] = []
    for (let at = 0; at < workers.length; at += PART)
      rest.push(...((await this.#redis.run(REST, workers.slice(at, at + PART).map(aliveKey), [])) as readonly number[]))
    return new Map(
      workers.map((worker, at) => {
        const { node, facts } = JSON.parse(all[2 * at + 1]!) as Omit<BusMember, 'worker'>
        return [worker, { node, facts, ageMs: rest[at]! > 0 ? Math.max(0, this.#lostMs - rest[at]!) : undefined }]
      })
    )
  }

  async isAlive(worker: string): Promise<boolean> {
    return (await this.#redis.run(IS_ALIVE, [aliveKey(worker)], [], RETRY_MS)) === 1
  }

  /** Removes a member and frees its permits. False if it lives, and `isSure` is false. */
  async remove(worker: string, isSure: boolean): Promise<boolean> {
    if (!isSure && (await this.isAlive(worker))) return false
    const names = (await this.#redis.run(HELD, [heldKey(worker)], [], RETRY_MS)) as readonly string[]
    for (let at = 0; at < names.length; at += PART)
      await this.#redis.run(FREE, names.slice(at, at + PART).map(permitKey), [worker], RETRY_MS)
    const keys = [MEMBERS, aliveKey(worker), heldKey(worker)]
    return (await this.#redis.run(REMOVE, keys, [worker, isSure ? 1 : 0], RETRY_MS)) === 1
  }
}

/**
 * Sets the number of permits of a worker. `rejoin` runs when Redis has lost the members, and with them the permits; it resolves when
 * this worker may ask for more of them.
 */
export function permitsIn(redis: BusRedis, self: string, rejoin: (isRequest: boolean) => Promise<void>): SetPermits {
  const set = async (name: string, numbers: readonly number[]) =>
    Number(await redis.run(PERMIT, [permitKey(name), heldKey(self), aliveKey(self)], [self, ...numbers, name], PERMIT_MS))
  return async (name, { least, wanted, limit }) => {
    const numbers = [least, wanted, limit]
    const number = await set(name, numbers)
    if (number >= 0) return number
    await rejoin(wanted > least)
    return Math.max(0, await set(name, numbers))
  }
}
