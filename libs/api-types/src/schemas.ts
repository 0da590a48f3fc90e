import type { JsonSchema } from '@svc/core'
import type { Route } from '@svc/core/contracts'

type Properties = { readonly [name: string]: JsonSchema }

/** A string that is not blank. */
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

/** Closes the query of a route: unknown parameters are errors. */
export function withClosedQuery(route: Route): Route {
  const query = typeof route.query === 'object' ? route.query : {}
  return { ...route, query: { type: 'object', ...query, additionalProperties: false } }
}

/** A response 200 with this body. */
export const ok = (description: string, schema: JsonSchema) => ({ '200': { description, schema } })
