/** A JSON Schema of an object, as far as it is put together here. */
export interface SchemaTree {
  readonly [word: string]: unknown
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, SchemaTree>>
}

export const closed = (properties: Readonly<Record<string, SchemaTree>>): SchemaTree => ({
  type: 'object',
  additionalProperties: false,
  properties,
})

/** The same for one of several places whose values are put together: what one leaves out another may say. A list comes from one place, so its items stay as they are. */
export function layered({ required: _required, ...json }: SchemaTree): SchemaTree {
  const { properties } = json as SchemaTree
  if (properties === undefined) return json
  return { ...json, properties: Object.fromEntries(Object.entries(properties).map(([key, inner]) => [key, layered(inner)])) }
}

/** A schema with another one at a path in it. */
export function withSection(tree: SchemaTree, [key = '', ...rest]: readonly string[], json: SchemaTree): SchemaTree {
  const { properties = {} } = tree
  const there = properties[key]
  const inner = rest.length > 0 ? withSection(there ?? closed({}), rest, json) : there ? merged(there, json) : json
  return { ...tree, properties: { ...properties, [key]: inner } }
}

/** A section whose inner parts came first. */
const merged = (there: SchemaTree, json: SchemaTree): SchemaTree => ({
  ...json,
  properties: { ...json.properties, ...there.properties },
})

type Typed = readonly (readonly [type: string, json: SchemaTree])[]

/** Entries by name: what each may have follows from its `type`, or from its name where it has none. `definitions` are what the schema refers to. */
export function entriesSchema(
  section: string,
  typed: Typed
): { readonly schema: SchemaTree; readonly definitions: Readonly<Record<string, SchemaTree>> } {
  const types = typed.map(([type]) => type).sort()
  const byType = typed.map(([type]) => ({
    if: { properties: { type: { const: type } }, required: ['type'] },
    // a keyword of JSON Schema, and no promise
    // oxlint-disable-next-line unicorn/no-thenable
    then: refTo(`${section}.${type}`),
  }))
  // oxlint-disable-next-line unicorn/no-thenable
  const choose = (type: string) => ({ if: { required: ['type'] }, then: refTo(section), else: refTo(`${section}.${type}`) })
  const named = typed.map(([type]) => [type, choose(type)])
  const any = { type: 'object', properties: { type: { enum: types } }, allOf: byType }
  return {
    schema: {
      type: 'object',
      properties: Object.fromEntries(named) as Record<string, SchemaTree>,
      additionalProperties: refTo(section),
    },
    definitions: {
      [section]: any,
      ...Object.fromEntries(typed.map(([type, json]) => [`${section}.${type}`, entryOf(json, types)])),
    },
  }
}

const refTo = (name: string): SchemaTree => ({ $ref: `#/definitions/${name}` })

function entryOf(json: SchemaTree, types: readonly string[]): SchemaTree {
  const own = {
    type: { enum: types, description: "Whose entry it is; default: the entry's name." },
    enabled: { type: 'boolean', description: 'false: it is as if the entry were not there.' },
  }
  return layered({ ...json, properties: { ...own, ...json.properties } })
}
