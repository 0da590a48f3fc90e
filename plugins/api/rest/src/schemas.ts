import type { JsonSchema } from '@svc/core'

type Properties = { readonly [name: string]: JsonSchema }

/** Text that says something. */
export const text = (description?: string): JsonSchema => ({
  type: 'string',
  pattern: '\\S',
  patternHint: 'must be text that is not blank',
  ...(description ? { description } : {}),
})
export const object = (properties: Properties, required: readonly string[] = Object.keys(properties)): JsonSchema => ({
  type: 'object',
  properties,
  required,
})
export const list = (items: JsonSchema): JsonSchema => ({ type: 'array', items })
export const nullable = (type: string): JsonSchema => ({ type: [type, 'null'] })
export const words = (...allowed: readonly string[]): JsonSchema => ({ type: 'string', enum: allowed })
export const STRING: JsonSchema = { type: 'string' }
export const INTEGER: JsonSchema = { type: 'integer' }
export const NUMBER: JsonSchema = { type: 'number' }
export const BOOLEAN: JsonSchema = { type: 'boolean' }
export const TIME: JsonSchema = { type: 'string', format: 'date-time' }
export const OBJECT: JsonSchema = { type: 'object' }

/** A 200 with this body. */
export const ok = (description: string, schema: JsonSchema) => ({ '200': { description, schema } })
