import { isDeepStrictEqual } from 'node:util'
import type { JsonSchema } from '@svc/core'
import type { AuthScheme, ErrorCode, Route, RouteResponse, SecurityScheme } from '@svc/core/contracts'

type Tree = Record<string, unknown>

/** The input of the OpenAPI document. */
interface DocumentOptions {
  readonly version: string
  readonly routes: readonly (readonly [string, Route])[]
  readonly codes: readonly ErrorCode[]
  readonly schemes: readonly (readonly [string, AuthScheme])[]
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Builds the OpenAPI document from the schemas that validate requests. The order does not depend on the load order of plugins. */
export function openApiDocument({ version, routes, codes, schemes }: DocumentOptions): Tree {
  const sorted = routes.toSorted(([, a], [, b]) =>
    a.path === b.path ? METHODS.indexOf(a.method) - METHODS.indexOf(b.method) : a.path < b.path ? -1 : 1
  )
  const paths: Record<string, Tree> = {}
  const schemas: Record<string, unknown> = { Error: errorSchema(codes) }
  const publish = publisher(schemas)
  const security = securityOf(schemes)
  for (const [name, route] of sorted)
    (paths[templateOf(route.path)] ??= {})[route.method.toLowerCase()] = described(name, route, publish, security)
  return {
    openapi: '3.1.0',
    info: { title: 'Agent Service', version, description: 'Chat with models, manage conversations and run workflows.' },
    paths,
    components: { schemas, responses: errorResponses(codes), securitySchemes: security.schemes },
  }
}

const templateOf = (path: string) => path.replaceAll(/[:*]([^/]+)/g, '{$1}')

/** Describes a route. If a plugin's schema is invalid, only its own description is reduced, not the whole document. */
function described(name: string, route: Route, publish: Publish, security: Security): Tree {
  try {
    return operation(name, route, publish, security)
  } catch {
    return { operationId: name, summary: String(route.summary), ...security.of(route) }
  }
}

function operation(name: string, route: Route, publish: Publish, security: Security): Tree {
  const parameters = [...pathParameters(route.path), ...queryParameters(route.query, publish), ...conditions(route)]
  return {
    operationId: name,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [tagOf(route.path)],
    ...(route.scope ? { 'x-scope': route.scope } : {}),
    ...security.of(route),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...requestBody(route, publish),
    responses: {
      ...errorRefs(route),
      ...Object.fromEntries(
        Object.entries(route.responses ?? {}).map(([status, item]) => [status, response(item, publish, streamOf(route, status))])
      ),
    },
  }
}

const MEDIA_TYPES = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  text: 'text/plain',
  bytes: 'application/octet-stream',
} as const satisfies Record<NonNullable<Route['accepts']>, string>

function requestBody({ body, accepts = 'json' }: Route, publish: Publish): Tree {
  if (body === undefined && accepts !== 'bytes') return {}
  const media = body === undefined ? {} : { schema: publish(body) }
  return { requestBody: { required: true, content: { [MEDIA_TYPES[accepts]]: media } } }
}

const tagOf = (path: string) =>
  path.split('/').find(part => part !== '' && part !== 'api' && part !== 'v1' && part !== 'v1beta') ?? 'service'

const pathParameters = (path: string) =>
  [...path.matchAll(/([:*])([^/]+)/g)].map(([, mark, name]) => ({
    name,
    in: 'path',
    required: true,
    ...(mark === '*' ? { description: 'The rest of the path: it can contain slashes' } : {}),
    schema: { type: 'string' },
  }))

function queryParameters(query: JsonSchema | undefined, publish: Publish): Tree[] {
  const { properties = {}, required = [] } = (typeof query === 'object' ? query : {}) as {
    properties?: Tree
    required?: readonly string[]
  }
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema: publish(schema),
  }))
}

const conditions = ({ conditional = false }: Route): Tree[] => {
  if (conditional === false) return []
  if (conditional === true) return [IF_MATCH]
  return [{ ...IF_MATCH, required: false }, ...(conditional === 'or-new' ? [IF_NONE_MATCH] : [])]
}

const IF_NONE_MATCH: Tree = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: '* to make a new one, in place of If-Match',
  schema: { type: 'string', const: '*' },
}
const IF_MATCH: Tree = {
  name: 'If-Match',
  in: 'header',
  required: true,
  description: 'The ETag of the version to change, or * for any',
  schema: { type: 'string' },
}

/** The media type of a route that decides per request between a whole reply, which is described, and a stream. */
const streamOf = (route: Route, status: string) => ('stream' in route && status === '200' ? route.streams : undefined)

const EVENTS = { schema: { type: 'string', description: 'The events of a stream' } }

function response(
  { description, schema, contentType = 'application/json', events }: RouteResponse,
  publish: Publish,
  stream: string | undefined
): Tree {
  if (schema === undefined) return { description }
  const types = typeof contentType === 'string' ? [contentType] : contentType
  const undescribed = stream === undefined || types.includes(stream) ? {} : { [stream]: EVENTS }
  const streamed = events === undefined ? undescribed : { 'text/event-stream': { schema: publish(events) } }
  const described = Object.fromEntries(types.map(type => [type, { schema: publish(schema) }]))
  return { description, content: { ...described, ...streamed } }
}

/** Returns the error responses of a route, derived from its input. */
function errorRefs(route: Route): Tree {
  // a POST without a body can also fail with 400, because the state can have changed
  const input = route.body !== undefined || route.query !== undefined || route.method === 'POST'
  const statuses = [
    ...(input ? [400] : []),
    ...(route.scope ? [401] : []),
    403, // a Host or Origin that the server does not accept
    ...(namesSomething(route) ? [404] : []),
    ...(route.conditional ? [412] : []),
    ...(route.body === undefined ? [] : [413, 415]),
    429,
    500,
    503,
  ]
  return Object.fromEntries(statuses.map(status => [status, { $ref: `#/components/responses/${status}` }]))
}

/** Whether the path, the body or a required query parameter can name something that does not exist. */
const namesSomething = ({ path, body, query }: Route) =>
  /[:*]/.test(path) ||
  body !== undefined ||
  (typeof query === 'object' && Array.isArray(query.required) && query.required.length > 0)

const errorSchema = (codes: readonly ErrorCode[]) => ({
  type: 'object',
  properties: {
    success: { const: false },
    error: { type: 'string' },
    error_code: { type: 'string', enum: codes.map(code => code.code) },
    details: { type: 'object' },
  },
  required: ['success', 'error', 'error_code', 'details'],
})

function errorResponses(codes: readonly ErrorCode[]): Tree {
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }
  const statuses = [...new Set(codes.map(code => code.status))].sort((a, b) => a - b)
  const described = (status: number) =>
    codes
      .filter(code => code.status === status)
      .map(code => `${code.code}: ${code.meaning}.`)
      .join(' ')
  return Object.fromEntries(statuses.map(status => [status, { description: described(status), content }]))
}

/** Returns a schema in the form of the document. */
type Publish = (schema: unknown) => unknown

const COMPONENT = /^[A-Z][A-Za-z0-9]*$/

/** Removes keywords that only svc knows. A schema with a suitable title becomes a component, unless another schema has that name. */
function publisher(schemas: Record<string, unknown>): Publish {
  const publish: Publish = schema => {
    if (Array.isArray(schema)) return schema.map(publish)
    if (typeof schema !== 'object' || schema === null) return schema
    const shown = Object.fromEntries(
      Object.entries(schema)
        .filter(([word]) => word !== 'patternHint')
        .map(([word, value]) => [word, publish(value)])
    )
    const { title } = shown
    if (typeof title !== 'string' || !COMPONENT.test(title)) return shown
    schemas[title] ??= shown
    return isDeepStrictEqual(schemas[title], shown) ? { $ref: `#/components/schemas/${title}` } : shown
  }
  return publish
}

/** The security schemes of the server in OpenAPI form. */
interface Security {
  readonly schemes: Readonly<Record<string, SecurityScheme>>
  /** Returns the security requirement of a route: any of the schemes, with the scope of the route. */
  of(route: Pick<Route, 'scope'>): { readonly security?: readonly Readonly<Record<string, readonly string[]>>[] }
}

const WHEN = 'Required if `server.auth.enabled` is true.'

function securityOf(schemes: readonly (readonly [string, AuthScheme])[]): Security {
  const shown = schemes
    .flatMap(([name, { shown: item, guards, always }]) => (item ? [{ key: keyOf(name), one: item, guards, always }] : []))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
  return {
    schemes: Object.fromEntries(
      shown.map(({ key, one: item, always }) => [
        key,
        always ? item : { ...item, description: [item.description, WHEN].join(' ').trim() },
      ])
    ),
    of({ scope }) {
      if (scope === undefined) return { security: [] }
      const fit = shown.filter(({ guards }) => guards === undefined || guards === scope)
      return fit.length > 0 ? { security: fit.map(({ key }) => ({ [key]: [scope] })) } : {}
    },
  }
}

/** Converts the name of a scheme to a valid key of `components`. */
const keyOf = (name: string) => name.replaceAll(/[^\w.-]/g, '_')
