import type { JsonSchema } from '@svc/core'
import type { ToolSpec } from '@svc/core/contracts'
import { isTree, type Tree } from '@svc/provider-http'

const ROOT_UNIONS = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'then', 'else', 'enum', 'const']

/** A tool as the wire has it. Its schema must be of an object without unions at the top: the description names them instead. */
export function wireTool({ name, description, parameters }: ToolSpec): Tree {
  const schema: Tree = isTree(parameters) ? parameters : {}
  const unions = ROOT_UNIONS.filter(word => Object.hasOwn(schema, word))
  if (unions.length === 0) return { name, description, input_schema: { ...schema, type: 'object' } }
  const kept = Object.fromEntries(Object.entries(schema).filter(([word]) => !unions.includes(word)))
  const notes = JSON.stringify(Object.fromEntries(unions.map(word => [word, schema[word]])))
  return {
    name,
    description: `${description}\n\nThe arguments must also fit this schema: ${notes}`.trim(),
    input_schema: { ...kept, type: 'object' },
  }
}

const LISTS = ['anyOf', 'oneOf', 'allOf']
const MAPS = ['properties', '$defs', 'definitions']
const KEPT = new Set(['$ref', 'type', 'title', 'description', 'const', 'enum', 'required', 'default'])
const FORMATS = new Set('date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '))

/**
 * A schema for replies in the part of JSON Schema that the wire knows: objects are closed, unions are `anyOf`; other constraints become part of the
 * description.
 */
export function replySchema(schema: JsonSchema): Tree {
  return isTree(schema) ? narrow(schema) : {}
}

function narrow(schema: Tree): Tree {
  if (typeof schema.$ref === 'string') return { $ref: schema.$ref }
  const kept: Record<string, unknown> = {}
  const notes: string[] = []
  for (const [word, value] of Object.entries(schema)) {
    const inner = narrowedBelow(word, value)
    if (inner !== undefined) kept[word === 'oneOf' ? 'anyOf' : word] = inner
    else if (isKept(word, value)) kept[word] = value
    else if (word !== 'additionalProperties' && word !== '$schema') notes.push(`${word}: ${JSON.stringify(value)}`)
  }
  if (kept.type === 'object' || kept.properties) kept.additionalProperties = false
  if (notes.length > 0) kept.description = [kept.description, notes.join(', ')].filter(Boolean).join('\n\n')
  return kept
}

/** The value of a word that holds schemas, each of them narrowed. */
function narrowedBelow(word: string, value: unknown): unknown {
  if (MAPS.includes(word) && isTree(value)) return mapped(value)
  if (LISTS.includes(word) && Array.isArray(value)) return value.map(below)
  return word === 'items' && isTree(value) ? narrow(value) : undefined
}

const below = (value: unknown): unknown => (isTree(value) ? narrow(value) : value)
const mapped = (value: Tree): Tree => Object.fromEntries(Object.entries(value).map(([key, one]) => [key, below(one)]))

function isKept(word: string, value: unknown): boolean {
  if (word === 'format') return FORMATS.has(String(value))
  if (word === 'minItems') return value === 0 || value === 1
  return KEPT.has(word)
}
