import type { Tool } from '@svc/core/contracts'

type Tree = Readonly<Record<string, unknown>>
/** A parameter of a tool in `GET /api/v1/tools`. */
interface ParameterRecord {
  readonly type: string
  readonly description?: string
  readonly required: boolean
}

/** A tool in `GET /api/v1/tools`. */
export interface ToolRecord {
  readonly name: string
  readonly description: string
  readonly category: string
  readonly parameters: Readonly<Record<string, ParameterRecord>>
}

/** Converts a tool to the form of `GET /api/v1/tools`. */
export function toolRecord(
  name: string,
  { description, category, parameters }: Pick<Tool, 'description' | 'category' | 'parameters'>
): ToolRecord {
  return { name, description, category, parameters: parametersOf(parameters) }
}

function parametersOf(root: unknown): Record<string, ParameterRecord> {
  const { properties, required } = follow(root, root)
  const must = Array.isArray(required) ? required : []
  const entries = isTree(properties) ? Object.entries(properties) : []
  return Object.fromEntries(entries.map(([name, schema]) => [name, parameter(schema, root, must.includes(name))]))
}

function parameter(schema: unknown, root: unknown, required: boolean): ParameterRecord {
  const own = isTree(schema) ? schema.description : undefined
  const description = typeof own === 'string' ? own : follow(schema, root).description
  return { type: typeOf(schema, root) || 'any', ...(typeof description === 'string' ? { description } : {}), required }
}

/** Returns the type of a schema; the types of a union are joined with `|`. Empty if the schema has no type. */
function typeOf(schema: unknown, root: unknown, depth = 0): string {
  const { type, anyOf, oneOf } = follow(schema, root)
  if (typeof type === 'string') return type
  if (Array.isArray(type)) return type.join('|')
  const branches = [anyOf, oneOf].find(Array.isArray)
  if (!branches || depth > 8) return ''
  const words = branches.map(branch => typeOf(branch, root, depth + 1) || 'any').flatMap(word => word.split('|'))
  return [...new Set(words)].join('|')
}

/** Returns the schema itself or the target of its local `$ref`. A circular reference returns an empty schema. */
function follow(schema: unknown, root: unknown): Tree {
  let at = schema
  for (let hops = 0; hops < 16 && isTree(at); hops++) {
    if (typeof at.$ref !== 'string') return at
    at = at.$ref.startsWith('#') ? atPointer(root, at.$ref.slice(1)) : undefined
  }
  return {}
}

function atPointer(root: unknown, pointer: string): unknown {
  const keys = pointer
    .split('/')
    .slice(1)
    .map(key => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  return keys.reduce<unknown>(
    (at, key) => (typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? (at as Tree)[key] : undefined),
    root
  )
}

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)
