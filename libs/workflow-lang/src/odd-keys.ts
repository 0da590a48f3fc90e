/** The engine of expressions asks an object for its `constructor` to know what it is, and data may have a key of that name. Those are given to it as maps. */
export function withOddKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Map) return value
  if (Array.isArray(value)) return sameOr(value, value.map(withOddKeys))
  const entries = Object.entries(value)
  const made = entries.map(([key, one]) => [key, withOddKeys(one)] as const)
  if (Object.hasOwn(value, 'constructor')) return new Map(made)
  return made.some(([, one], at) => one !== entries[at]![1]) ? Object.fromEntries(made) : value
}

const sameOr = (list: readonly unknown[], made: readonly unknown[]) => (made.some((one, at) => one !== list[at]) ? made : list)
