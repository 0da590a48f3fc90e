import {
  checkToolCount,
  type Fields,
  type Losses,
  isFields,
  fieldInvalid,
  objectAt,
  listAt,
  textAt,
  nameAt,
} from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import type { Json, ModelRequest, ToolSpec } from '@svc/core/contracts'
import { camelCased, given, shown, wordAt } from './fields.ts'

type ToolFields = Pick<ModelRequest, 'tools' | 'toolChoice'>

/** Tools and tool choice of a request. Throws INVALID_VALUE. */
export function toolsOf(body: Fields, losses: Losses): ToolFields {
  const declared = declaredTools(given(body, 'tools'), losses)
  const config = given(body, 'toolConfig')
  if (config === undefined) return declared.length === 0 ? {} : { tools: declared }
  return choiceOf(objectAt(config, 'toolConfig'), declared, losses)
}

const DECLARATIONS = new Set(['functionDeclarations'])

/** The functions of the client. Other tools are those that a server of this API runs. */
function declaredTools(listed: Json | undefined, losses: Losses): readonly ToolSpec[] {
  const seen = new Set<string>()
  const tools = listAt(listed ?? [], 'tools').flatMap((item, at) => {
    const path = `tools[${at}]`
    const tool = objectAt(item, path)
    losses.dropUnknown(tool, DECLARATIONS, 'tools')
    const declarations = listAt(given(tool, 'functionDeclarations') ?? [], `${path}.functionDeclarations`)
    return declarations.map((one, index) => declared(one, `${path}.functionDeclarations[${index}]`, seen, losses))
  })
  checkToolCount(tools.length, 'tools')
  return tools
}

const NAME = /^[\w.:-]{1,128}$/
const DECLARED = new Set(['name', 'description', 'parameters', 'parametersJsonSchema'])

function declared(item: Json, path: string, seen: Set<string>, losses: Losses): ToolSpec {
  const fields = objectAt(item, path)
  const name = textAt(fields.name, `${path}.name`)
  if (!NAME.test(name)) throw fieldInvalid(`${path}.name`, 'must have 1 to 128 letters, digits, "_", ".", ":" or "-"')
  if (seen.has(name)) throw fieldInvalid(`${path}.name`, `must be unique, but "${name}" is the name of another function`)
  seen.add(name)
  losses.dropUnknown(fields, DECLARED, 'tools.functionDeclarations')
  const description = given(fields, 'description')
  return {
    name,
    description: description === undefined ? '' : textAt(description, `${path}.description`),
    parameters: parametersOf(fields, path),
  }
}

function parametersOf(fields: Fields, path: string): JsonSchema {
  const schema = schemaOf(fields, ['parameters', 'parametersJsonSchema'], path)
  return (schema as JsonSchema | undefined) ?? { type: 'object', properties: {} }
}

/** The schema in one of two fields: the first is in Google's form, the second is JSON Schema. Throws INVALID_VALUE for both. */
export function schemaOf(fields: Fields, [own, standard]: readonly [string, string], path: string): Fields | undefined {
  const [first, second] = [given(fields, own), given(fields, standard)]
  if (first !== undefined && second !== undefined) throw fieldInvalid(`${path}.${standard}`, `must be absent beside ${own}`)
  if (second !== undefined) return objectAt(second, `${path}.${standard}`)
  return first === undefined ? undefined : jsonSchemaOf(objectAt(first, `${path}.${own}`))
}

/** Words of Google's schemas with schemas as their values. */
const SCHEMAS: ReadonlySet<string> = new Set(['items', 'additionalProperties', 'not'])
const SCHEMA_LISTS: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])
const SCHEMA_MAPS: ReadonlySet<string> = new Set(['properties', 'defs', '$defs', 'patternProperties'])
/** Numbers that Google also takes as text, as all 64-bit integers. */
const COUNTS: ReadonlySet<string> = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'])
/** Words that JSON Schema does not have. */
const OWN_WORDS: ReadonlySet<string> = new Set(['nullable', 'propertyOrdering', 'type', 'example'])

/** A schema of Google, a subset of OpenAPI 3.0 with types in upper case, as JSON Schema. The server has bounded its depth. */
function jsonSchemaOf(schema: Fields): Fields {
  const made: Record<string, Json | undefined> = { ...typeOf(schema) }
  for (const [key, value] of Object.entries(schema)) {
    const name = key.startsWith('$') ? key : camelCased(key)
    if (value === undefined || value === null || OWN_WORDS.has(name)) continue
    made[name] = wordOf(name, value)
  }
  if (schema.example !== undefined) made.examples = [schema.example]
  if (schema.nullable === true && Array.isArray(made.enum)) made.enum = [...(made.enum as Json[]), null]
  return made
}

function wordOf(name: string, value: Json): Json {
  if (SCHEMAS.has(name)) return isFields(value) ? jsonSchemaOf(value) : value
  if (SCHEMA_LISTS.has(name) && Array.isArray(value)) return value.map(one => (isFields(one) ? jsonSchemaOf(one) : one))
  if (SCHEMA_MAPS.has(name) && isFields(value))
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, isFields(one) ? jsonSchemaOf(one) : one]))
  return COUNTS.has(name) && typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
}

function typeOf({ type, nullable }: Fields): Fields {
  if (typeof type !== 'string') return type === undefined || type === null ? {} : { type }
  const lower = type.toLowerCase()
  if (lower === 'type_unspecified') return {}
  return { type: nullable === true && lower !== 'null' ? [lower, 'null'] : lower }
}

const CONFIG = new Set(['functionCallingConfig'])
const CALLING = new Set(['mode', 'allowedFunctionNames'])

function choiceOf(config: Fields, tools: readonly ToolSpec[], losses: Losses): ToolFields {
  losses.dropUnknown(config, CONFIG, 'toolConfig')
  const path = 'toolConfig.functionCallingConfig'
  const calling = objectAt(given(config, 'functionCallingConfig') ?? {}, path)
  losses.dropUnknown(calling, CALLING, path)
  const mode = wordAt(given(calling, 'mode') ?? 'AUTO', `${path}.mode`)
  const allowed = allowedOf(calling, tools, path)
  if (tools.length === 0) {
    if (mode === 'ANY') losses.refuse(`${path}.mode`, 'is "ANY", but the request has no functions')
    return {}
  }
  switch (mode) {
    case 'AUTO':
    case 'MODE_UNSPECIFIED':
      return { tools }
    case 'NONE':
      return { tools, toolChoice: 'none' }
    case 'ANY':
      return { tools: allowed, toolChoice: allowed.length === 1 ? { tool: allowed[0]!.name } : 'required' }
    case 'VALIDATED':
      return { tools: allowed.map(tool => ({ ...tool, strict: true })) }
    default:
      throw fieldInvalid(`${path}.mode`, `must be AUTO, ANY, NONE or VALIDATED, was "${shown(mode)}"`)
  }
}

/** The functions that can be called: all, or those of the list. */
function allowedOf(calling: Fields, tools: readonly ToolSpec[], path: string): readonly ToolSpec[] {
  const names = listAt(given(calling, 'allowedFunctionNames') ?? [], `${path}.allowedFunctionNames`)
  if (names.length === 0) return tools
  const byName = new Map(tools.map(tool => [tool.name, tool]))
  const found = new Set<ToolSpec>()
  for (const [at, item] of names.entries()) {
    const place = `${path}.allowedFunctionNames[${at}]`
    const tool = byName.get(nameAt(item, place))
    if (!tool) throw fieldInvalid(place, 'must be the name of a function of the request')
    found.add(tool)
  }
  return [...found]
}
