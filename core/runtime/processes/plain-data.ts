const DEEPEST = 500
const PLAIN = new Set<unknown>([Object.prototype, null, Array.prototype, Date.prototype, Uint8Array.prototype])

const isLeaf = (value: object): value is Date | Uint8Array => value instanceof Date || value instanceof Uint8Array

/**
 * Returns the first value that cannot cross a process, as text: `cheat.args[0].tools[0].b is a function`. Returns `undefined`
 * for plain values: JSON values, undefined, bigint, Date, Uint8Array, lists and objects without a class.
 */
export function findNonPlain(value: unknown, path: string): string | undefined {
  return walk(value, path, new Map(), new Set())
}

/** `above`: the enclosing objects with their paths. `done`: objects found to be plain, so that shared ones are visited once. */
function walk(value: unknown, path: string, above: Map<object, string>, done: Set<object>): string | undefined {
  if (typeof value === 'function' || typeof value === 'symbol') return `${path} is a ${typeof value}`
  if (typeof value !== 'object' || value === null || done.has(value)) return undefined
  const same = above.get(value)
  if (same !== undefined) return `${path} is a cycle: it is ${same} again`
  if (above.size >= DEEPEST) return `${path} is nested deeper than ${DEEPEST} levels`
  const kind = nonPlainKind(value)
  if (kind !== undefined) return `${path} is ${kind}`
  if (isLeaf(value)) return undefined
  above.set(value, path)
  for (const [key, member] of Object.entries(value)) {
    const cheat = walk(member, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, above, done)
    if (cheat !== undefined) return cheat
  }
  above.delete(value)
  done.add(value)
  return undefined
}

function nonPlainKind(value: object): string | undefined {
  const prototype: { constructor?: { name?: unknown } } | null = Object.getPrototypeOf(value)
  if (PLAIN.has(prototype)) return Object.getOwnPropertySymbols(value).length > 0 ? 'an object with a symbol as key' : undefined
  const given = prototype?.constructor?.name
  const name = typeof given === 'string' && given !== '' ? given : 'object of a class without name'
  return `${/^[AEIOU]/i.test(name) ? 'an' : 'a'} ${name}`
}

/** Returns a deep, frozen copy of a plain value. Bytes of a Uint8Array are copied, because JavaScript cannot freeze them. */
export function copyPlain<T>(value: T): T {
  return copy(value, new Map()) as T
}

function copy(value: unknown, made: Map<object, unknown>): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (made.has(value)) return made.get(value)
  if (isLeaf(value)) return value instanceof Date ? Object.freeze(new Date(value)) : new Uint8Array(value)
  const twin: object = Array.isArray(value) ? [] : {}
  made.set(value, twin)
  // An assignment would let a key named __proto__ change the prototype.
  for (const [key, member] of Object.entries(value))
    Object.defineProperty(twin, key, { value: copy(member, made), enumerable: true })
  return Object.freeze(twin)
}
