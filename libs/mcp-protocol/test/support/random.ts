/** Numbers from 0 to 1 that are the same each time (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const KEYS = ['type', 'properties', '$defs', 'inputSchema', 'outputSchema', 'parameters', 'result', 'items', 'x-odd', 'name']

/** An object of JSON at most so many levels deep. */
export const anyJson = (random: () => number, depth: number): object =>
  Object.fromEntries(
    Array.from({ length: Math.floor(random() * 5) }, () => [
      KEYS[Math.floor(random() * KEYS.length)]!,
      anyValue(random, depth - 1),
    ])
  )

function anyValue(random: () => number, depth: number): unknown {
  const kind = Math.floor(random() * (depth > 0 ? 6 : 4))
  if (kind === 4) return anyJson(random, depth)
  if (kind === 5) return Array.from({ length: Math.floor(random() * 4) }, () => anyValue(random, depth - 1))
  return [null, random() < 0.5, random() * 1e6, `text ${random()}`][kind]
}
