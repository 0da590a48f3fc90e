// What completion needs to know of a JSON Schema.

export type Node = Readonly<Record<string, unknown>>

export const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value)

const refIn = (root: Node, ref: string): unknown =>
  ref
    .replace(/^#\/?/, '')
    .split('/')
    .reduce<unknown>((value, key) => (isNode(value) ? value[key] : undefined), root)

/** A schema with what its references, choices and conditions add, as far as the values beside are known. */
export function whole(root: Node, schema: unknown, values: Readonly<Record<string, string>>, depth = 0): readonly Node[] {
  if (!isNode(schema) || depth > 8) return []
  if (typeof schema.$ref === 'string') return whole(root, refIn(root, schema.$ref), values, depth + 1)
  const more = [schema.allOf, schema.anyOf, schema.oneOf].flatMap(list => (Array.isArray(list) ? list : []))
  const isMet = isNode(schema.if) && holds(schema.if, values)
  return [schema, ...more, ...(isMet ? [schema.then] : [])].flatMap(part =>
    part === schema ? [schema] : whole(root, part, values, depth + 1)
  )
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
