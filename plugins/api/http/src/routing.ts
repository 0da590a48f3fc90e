import { createRequire } from 'node:module'
import { isTree, type JsonSchema, type Log, nearest, schema, type SchemaProblem, show, type SlotView } from '@svc/core'
import type { HttpMethod, Mount, Route } from '@svc/core/contracts'
import { type ParametersCheck, toolSchema } from '@svc/plugin-kit/tool-schema'
import type { Bound, Checks, Context, Fields, Middleware, RequestState, SchemaCheck } from './context.ts'
import { invalidValue, methodNotAllowed, missingField, routeInvalid, routeUnknown } from './errors.ts'

// `require`, because the ES module of @koa/router reads all exports of node:http: see listener.ts.
const { Router } = createRequire(import.meta.url)('@koa/router') as typeof import('@koa/router')

/** Finds routes by method and path. */
export interface Routing {
  /** Stores the matching route or mount in the state of the request, for the log, metrics and authentication. Refuses nothing. */
  readonly find: Middleware
  /** Sends a browser that opens `/` to the page. */
  readonly redirectBrowser: Middleware
  /** Refuses requests without a matching route. Throws NOT_FOUND, METHOD_NOT_ALLOWED. */
  readonly refuseUnknown: Middleware
}

/** The routes and mounts to search. */
interface RoutingOptions {
  readonly routes: SlotView<Route>
  readonly mounts: SlotView<Mount>
  /** Whether a plugin runs in its own process. */
  readonly isIsolated: (plugin: string | undefined) => boolean
  readonly log: Log
}

/** The routers of the current routes. */
interface Routers {
  readonly version: number
  /** Routes of plugins in this process without parameters, by method and path. */
  readonly exact: ReadonlyMap<string, Bound>
  readonly own: Middleware
  readonly isolated: Middleware
}

/**
 * Creates two routers of @koa/router: one for routes of plugins in this process, one for routes of isolated plugins. The second is asked only if neither the first
 * router nor a mount matches the path. The routers are created again when a slot changes. A route without parameters, which always wins, is looked up by its path
 * first: the router tries the expressions of all routes.
 */
export function createRouting(parts: RoutingOptions): Routing {
  const { routes, mounts, isIsolated } = parts
  const known = new WeakMap<Route, Bound>()
  let routers: Routers | undefined
  const current = () => {
    const version = routes.version + mounts.version // the sum is unique, because both versions only grow
    return routers?.version === version ? routers : (routers = createRouters(parts, known, version))
  }
  /** The page for a browser that opens `/`. */
  const page = () => {
    const all = mounts.entries().map(([, mount]) => mount)
    return (all.find(({ home }) => home) ?? all.find(({ guide }) => guide))?.path
  }
  const guides = () => {
    const own = routes.entries().filter(([name]) => !isIsolated(routes.owner(name)))
    return [...mounts.entries(), ...own].filter(([, { guide }]) => guide).map(([, { path }]) => path)
  }
  return {
    find(ctx, next) {
      const { exact, own, isolated } = current()
      const bound = exact.get(`${ctx.method} ${ctx.path}`)
      if (bound) {
        ctx.params = {}
        ctx.state.route = bound
        return next()
      }
      return own(ctx, () => {
        if (isMatched(ctx)) return next()
        ctx.state.mount = mountOf(mounts, ctx.path, ({ off }) => off === undefined)
        return ctx.state.mount || isReserved(ctx.path) ? next() : isolated(ctx, next)
      })
    },
    redirectBrowser(ctx, next) {
      const start = ctx.path === '/' && !ctx.state.route ? page() : undefined
      if (start !== undefined) ctx.vary('Accept')
      if (start === undefined || !isOfBrowser(ctx)) return next()
      ctx.redirect(start)
    },
    refuseUnknown(ctx, next) {
      if (ctx.state.route || ctx.state.mount) return next()
      if (!isMatched(ctx)) throw routeUnknown(ctx.method, ctx.path, guides(), mountOf(mounts, ctx.path)?.off)
      const allowed = methodsOf(ctx)
      ctx.set('Allow', allowed.join(', '))
      if (ctx.method !== 'OPTIONS') throw methodNotAllowed(ctx.method, allowed)
      ctx.status = 204
    },
  }
}

/** Whether the client prefers a page. `curl` accepts everything, and gets the error record. */
const isOfBrowser = (ctx: Context) => ['GET', 'HEAD'].includes(ctx.method) && ctx.accepts('json', 'html') === 'html'

function createRouters({ routes, isIsolated, log }: RoutingOptions, known: WeakMap<Route, Bound>, version: number): Routers {
  const bound = routes.entries().flatMap(([name, route]): Bound[] => {
    const plugin = routes.owner(name)
    try {
      const found = known.get(route) ?? bind(name, route, plugin, isIsolated(plugin))
      known.set(route, found)
      return [found]
    } catch (err) {
      log.error({ err, route: name, plugin }, `the route ${name} is not served: its definition is invalid`)
      return []
    }
  })
  const [own, isolated] = [bound.filter(item => !item.isIsolated), bound.filter(item => item.isIsolated)]
  const served = withoutTwins([...own, ...isolated], log)
  const servedOwn = served.filter(item => !item.isIsolated)
  const plain = servedOwn.filter(({ route }) => PLAIN_PATH.test(route.path))
  return {
    version,
    exact: new Map(plain.map(item => [`${item.route.method} ${item.route.path}`, item])),
    own: routerOf(servedOwn),
    isolated: routerOf(served.filter(item => item.isIsolated)),
  }
}

/** A path that only matches itself, with or without a slash at its end. */
const PLAIN_PATH = /^[\w./~-]+$/

const VERBS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const satisfies Record<
  HttpMethod,
  string
>

/** If two routes match, the route with fewer parameters answers: `/a/b` before `/a/:id`. */
function routerOf(all: readonly Bound[]): Middleware {
  const router = new Router<RequestState>({ sensitive: true, exclusive: 'specificity' })
  for (const bound of all)
    router[VERBS[bound.route.method]](bound.name, bound.route.path, (ctx, next) => {
      ctx.state.route = bound
      return next()
    })
  return router.routes() as Middleware
}

const ACCEPTED: readonly unknown[] = ['json', 'form', 'text', 'bytes'] satisfies readonly Route['accepts'][]
/** Maximum characters of a heartbeat. */
const LONGEST_HEARTBEAT = 1_000

/** Prepares a route. A route of an isolated plugin cannot set `uncounted` and `guide`. */
function bind(name: string, given: Route, plugin: string | undefined, isIsolated: boolean): Bound {
  if (given.accepts !== undefined && !ACCEPTED.includes(given.accepts)) throw routeInvalid(name, `accepts ${show(given.accepts)}`)
  if (given.heartbeat !== undefined && !isHeartbeat(given.heartbeat)) throw routeInvalid(name, 'has a heartbeat that is no event')
  const { uncounted: _, guide: __, ...rest } = given
  const route = isIsolated ? rest : given
  return { name, plugin, route, checks: createChecks(route, isIsolated), isIsolated }
}

/** Whether the text is comments or events that end with an empty line. */
const isHeartbeat = (text: unknown): boolean =>
  typeof text === 'string' && text.length <= LONGEST_HEARTBEAT && text.endsWith('\n\n')

/** Paths that speak for the whole server, for example about its certificate or its tokens (RFC 8615). */
export const isReserved = (path: string) => path === '/.well-known' || path.startsWith('/.well-known/')

/** Returns the mount with the longest path that contains the path of the request. */
function mountOf(mounts: SlotView<Mount>, path: string, isMeant: (mount: Mount) => boolean = () => true): Mount | undefined {
  if (mounts.size === 0) return undefined
  const isAbove = (mount: Mount) => path === mount.path || path.startsWith(`${mount.path}/`)
  const above = mounts.entries().filter(([, mount]) => isAbove(mount) && isMeant(mount))
  return above.toSorted(([, a], [, b]) => b.path.length - a.path.length)[0]?.[1]
}

/** The routes that @koa/router has matched by path, with any method. */
const matchedOf = (ctx: Context) => (ctx.matched ?? []) as readonly { readonly methods: string[] }[]
const isMatched = (ctx: Context) => matchedOf(ctx).length > 0

const methodsOf = (ctx: Context) => [...new Set([...matchedOf(ctx).flatMap(({ methods }) => methods.toSorted()), 'OPTIONS'])]

function withoutTwins(all: readonly Bound[], log: Log): Bound[] {
  const seen = new Map<string, string>()
  return all.filter(({ name, plugin, route, isIsolated }) => {
    const pattern = `${route.method} ${route.path.replaceAll(/([:*])[^/]+/g, '$1')}`
    const first = seen.get(pattern)
    const isLost = isIsolated && isReserved(route.path)
    if (first || isLost)
      log.error(
        { route: name, first, plugin },
        first
          ? `the route ${name} is not served: the route ${first} already serves ${route.method} ${route.path}`
          : `the route ${name} is not served: isolated plugins cannot serve paths below /.well-known`
      )
    else seen.set(pattern, name)
    return first === undefined && !isLost
  })
}

// --- the checks of a request by the schemas of its route ---

/** `isIsolated`: the schemas are untrusted, so their patterns run in an engine that cannot hang. */
const createChecks = (route: Route, isIsolated: boolean): Checks => ({
  body: route.accepts === 'bytes' ? undefined : checkOf(route.body, isIsolated),
  query: checkOf(route.query, isIsolated),
})

/** Keywords that, without `required` and defaults, leave an empty object as it is. */
const PLAIN: ReadonlySet<string> = new Set(['type', 'properties', 'required', 'additionalProperties', 'title', 'description'])

function checkOf(json: JsonSchema | undefined, isIsolated: boolean): SchemaCheck | undefined {
  if (json === undefined) return undefined
  const { required = [], properties = {} } = (typeof json === 'object' ? json : {}) as {
    required?: string[]
    properties?: Record<string, { type?: string }>
  }
  const typed = Object.entries(properties).filter(([, { type }]) => type === 'integer' || type === 'number' || type === 'boolean')
  return {
    problems: isIsolated ? isolatedProblems(json) : ownProblems(json),
    required,
    acceptsNothing: acceptsNothing(json),
    isOpen: isOpen(json),
    typed: new Map(typed.map(([name, { type }]) => [name, type!])),
    known: new Set(Object.keys(properties)),
  }
}

/** Whether an object may have properties that the schema does not name, and none of them has a meaning. */
function isOpen(json: JsonSchema): boolean {
  if (typeof json !== 'object' || !isTree(json.properties)) return false
  return !OTHER_NAMES.some(word => Object.hasOwn(json, word))
}

/** Keywords that give a meaning to, or refuse, properties beside `properties`. */
const OTHER_NAMES = [
  '$ref',
  'additionalProperties',
  'allOf',
  'anyOf',
  'oneOf',
  'if',
  'patternProperties',
  'unevaluatedProperties',
] as const

function ownProblems(json: JsonSchema): SchemaCheck['problems'] {
  const own = schema(json, { problems: 'first' })
  return fields => own.check(fields)
}

/** Whether a schema certainly accepts an empty object, and adds nothing to it. */
function acceptsNothing(json: JsonSchema): boolean {
  if (typeof json !== 'object' || !Object.keys(json).every(key => PLAIN.has(key))) return false
  const { type, required, properties } = json as { readonly [key: string]: unknown }
  const isObject = type === 'object' || type === undefined
  const isEmpty = required === undefined || (Array.isArray(required) && required.length === 0)
  return isObject && isEmpty && Object.values(Object(properties)).every(one => Object(one).default === undefined)
}

function isolatedProblems(json: JsonSchema): SchemaCheck['problems'] {
  let made: Promise<ParametersCheck> | undefined
  return async fields => (await (made ??= toolSchema(json))).check(fields, 'first')
}

/** Checks query and body against the schemas of the route. Throws MISSING_FIELD, INVALID_VALUE. */
export const validation: Middleware = async (ctx, next) => {
  const { query, body } = ctx.state.route?.checks ?? {}
  if (ctx.state.route && ctx.querystring !== '') ctx.state.query = parseQuery(ctx.querystring, query?.known)
  // most requests have no query, and the first check of a schema compiles it
  const isChecked = query && !(query.acceptsNothing && ctx.querystring === '')
  const queryCheck = isChecked ? validate(query, typedQuery(query, ctx.state.query)) : undefined
  if (queryCheck) await queryCheck // a promise only for isolated plugins
  const bodyCheck = body && validate(body, ctx.request.body as Fields)
  if (bodyCheck) await bodyCheck
  if (body?.isOpen && ctx.path.startsWith(OWN_API)) reportIgnored(ctx, body.known)
  return next()
}

/** Below it, clients write bodies for svc. Bodies of `/v1` are those of other APIs, whose further fields are no mistakes. */
const OWN_API = '/api/v1/'
const [IGNORED, MOST_IGNORED, LONGEST_FIELD] = ['X-Ignored-Fields', 20, 100]

/**
 * Lists the fields of the body that the route does not know: they are ignored, so that clients of a later version work here. Each
 * is percent-encoded, with the nearest known one: `temprature;nearest=temperature`.
 */
function reportIgnored(ctx: Context, known: ReadonlySet<string>): void {
  const ignored: string[] = []
  for (const name in ctx.request.body as Fields) {
    if (known.has(name)) continue
    ignored.push(name.slice(0, LONGEST_FIELD).toWellFormed())
    if (ignored.length === MOST_IGNORED) break
  }
  if (ignored.length === 0) return
  const names = [...known]
  const shown = ignored.map(name => {
    const near = nearest(name, names)
    return `${encodeURIComponent(name)}${near === undefined ? '' : `;nearest=${near}`}`
  })
  ctx.set(IGNORED, shown.join(', '))
}

function validate(check: SchemaCheck, fields: Fields): void | Promise<void> {
  const missing = check.required.filter(name => !Object.hasOwn(fields, name))
  if (missing.length > 0) throw missingField(missing, check.required, Object.keys(fields).slice(0, 100))
  const problems = check.problems(fields)
  return problems instanceof Promise ? problems.then(refuseFirst) : refuseFirst(problems)
}

function refuseFirst([problem]: readonly SchemaProblem[]): void {
  if (problem) throw problem.keyword === 'unknown' ? unknownName(problem) : invalid(problem)
}

/** A name that a closed schema does not know: a query parameter, or a field of the body. */
function unknownName({ path, allowed = [], nearest }: SchemaProblem) {
  const reason = nearest === undefined ? 'is not known here' : `is not known here; did you mean "${nearest}"?`
  return invalidValue(path.slice(0, 100), reason, { allowed })
}

function invalid(problem: SchemaProblem) {
  const value = isShort(problem.value) ? { value: problem.value } : {}
  return invalidValue(problem.path || 'body', problem.message, {
    ...value,
    ...(problem.allowed ? { allowed: problem.allowed } : {}),
  })
}

const isShort = (value: unknown) =>
  (typeof value === 'string' ? value.length <= 200 : value !== undefined && typeof value !== 'object') || value === null

/** Parses the query. A parameter of the schema must not appear twice; of another repeated parameter the first value counts. */
function parseQuery(search: string, known: ReadonlySet<string> | undefined): Readonly<Record<string, string>> {
  const query: Record<string, string> = {}
  for (const [name, value] of new URLSearchParams(search)) {
    if (Object.hasOwn(query, name)) {
      if (known?.has(name)) throw invalidValue(name, 'is given more than once')
      continue
    }
    Object.defineProperty(query, name, { value, enumerable: true })
  }
  return query
}

/** Converts query values to numbers and booleans where the schema requires them. */
function typedQuery({ typed }: SchemaCheck, query: Readonly<Record<string, string>>): Fields {
  if (typed.size === 0) return { ...query }
  return Object.fromEntries(Object.entries(query).map(([name, text]) => [name, typedValue(typed.get(name), text)]))
}

function typedValue(type: string | undefined, text: string): unknown {
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  return type !== undefined && /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
}
