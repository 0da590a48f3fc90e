// What completion needs to know of a JSON Schema.

export type Node = Readonly<Record<string, unknown>>

export const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value)

const refIn = (root: Node, ref: string): unknown =>
  ref
    .replace(/^#\/?/, '')
    .split('/')
    .reduce<unknown>((value, key) => (isNode(value) ? value[key] : undefined), root)

/**
 * Schemas with what their references, choices and conditions add, as far as the values beside are known. Each part is there once,
 * however the schemas refer to each other: those of tools come from strangers.
 */
export function whole(root: Node, schemas: readonly unknown[], values: Readonly<Record<string, string>>): readonly Node[] {
  const [found, open] = [new Set<Node>(), new Set<unknown>(schemas)]
  // the loop goes on with what it adds
  for (const schema of open) {
    if (!isNode(schema)) continue
    found.add(schema)
    if (typeof schema.$ref === 'string') open.add(refIn(root, schema.$ref))
    for (const list of [schema.allOf, schema.anyOf, schema.oneOf])
      if (Array.isArray(list)) for (const part of list) open.add(part)
    if (isNode(schema.if) && holds(schema.if, values)) open.add(schema.then)
  }
  return [...found]
}

/** Whether a condition on constants is met: `{properties: {type: {const: 'tool'}}}`. */
function holds({ properties }: Node, values: Readonly<Record<string, string>>): boolean {
  if (!isNode(properties)) return false
  return Object.entries(properties).every(([key, wanted]) => isNode(wanted) && values[key] === wanted.const)
}

export function memberOf(schemas: readonly Node[], key: string): readonly unknown[] {
  return schemas.flatMap(({ properties, additionalProperties, items }) => {
    if (key === '-') return [items]
    if (isNode(properties) && Object.hasOwn(properties, key)) return [properties[key]]
    return isNode(additionalProperties) ? [additionalProperties] : []
  })
}

export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
