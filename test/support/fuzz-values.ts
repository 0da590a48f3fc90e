/** Random numbers from a seed: the same seed, the same frames (mulberry32). */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  below(most: number): number {
    return Math.floor(this.next() * most)
  }

  of<T>(all: readonly T[]): T {
    return all[this.below(all.length)]!
  }

  chance(share: number): boolean {
    return this.next() < share
  }
}

const nested = (levels: number) => {
  let found: unknown = 'deep'
  for (let at = 0; at < levels; at++) found = at % 2 ? [found] : { one: found }
  return found
}
const shared = (levels: number) => {
  let found: unknown = ['x']
  for (let at = 0; at < levels; at++) found = [found, found]
  return found
}
const circular = () => {
  const found: Record<string, unknown> = { list: [] }
  found.self = found
  ;(found.list as unknown[]).push(found)
  return found
}
const odd = () => Object.assign([1, 2], { hidden: shared(40) })

/** Values that code which trusts them stumbles over. */
const NASTY: readonly ((dice: Dice) => unknown)[] = [
  () => undefined,
  () => null,
  () => Number.NaN,
  () => Number.NEGATIVE_INFINITY,
  () => -0,
  () => -1,
  () => 2 ** 32,
  () => Number.MAX_SAFE_INTEGER,
  () => 1e308,
  () => 7n,
  () => 2n ** 20_000n,
  () => '',
  () => '__proto__',
  () => 'constructor',
  () => '\u0000\u001b[2J\ud800',
  dice => 'x'.repeat(dice.below(70_000)),
  () => new Date(Number.NaN),
  () => new Date(0),
  () => /(a+)+$/,
  () => new Map([['a', 1]]),
  () => new Set([1]),
  () => new Error('an error'),
  () => Object(1) as unknown,
  () => new Uint8Array(9),
  () => Buffer.from('bytes'),
  () => new Float64Array(3),
  () => new ArrayBuffer(8),
  () => Object.assign([], { length: 2 ** 32 - 1 }),
  () => Object.assign([], { length: 1000 }),
  () => JSON.parse('{"__proto__":{"polluted":true}}') as unknown,
  () => ({ toString: 1, valueOf: 1, toJSON: 1 }),
  () => JSON.parse('{"then":1,"code":{},"message":[],"details":"x"}') as unknown,
  () => ({ length: 1e9 }),
  dice => nested(dice.below(1500)),
  dice => shared(dice.below(60)),
  circular,
  odd,
]

/** A random value, most of them nasty. */
export function randomValue(dice: Dice, depth = 3): unknown {
  if (depth === 0 || dice.chance(0.7)) return dice.of(NASTY)(dice)
  const size = dice.below(4)
  if (dice.chance(0.5)) return Array.from({ length: size }, () => randomValue(dice, depth - 1))
  return Object.fromEntries(
    Array.from({ length: size }, (_, at) => [dice.of(['code', 'id', 'data', `k${at}`]), randomValue(dice, depth - 1)])
  )
}

/** A value in which one place, at random, is another; lists get longer or shorter, too. */
export function mutated(value: unknown, dice: Dice): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array || value instanceof Date || dice.chance(0.15))
    return randomValue(dice)
  if (Array.isArray(value)) {
    const list = [...(value as unknown[])]
    const at = dice.below(list.length + 1)
    const way = dice.next()
    if (way < 0.15) list.splice(at, 1)
    else if (way < 0.3) list.splice(at, 0, randomValue(dice))
    else list[at] = mutated(list[at], dice)
    return list
  }
  const members = Object.entries(value)
  if (members.length === 0) return randomValue(dice)
  const [key, member] = dice.of(members)
  return { ...value, [key]: mutated(member, dice) }
}
