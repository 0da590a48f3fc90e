import { createRequire } from 'node:module'
import { type Log, type SlotView, show } from '@svc/core'
import type { HttpMethod, Mount, Route } from '@svc/core/contracts'
import type { Bound, Context, Middleware, RequestState } from './context.ts'
import { methodNotAllowed, routeInvalid, routeUnknown } from './errors.ts'
import { createChecks } from './body.ts'

// `require`, because the ES module of @koa/router reads all exports of node:http: see listener.ts.
const { Router } = createRequire(import.meta.url)('@koa/router') as typeof import('@koa/router')

/** Finds routes by method and path. */
export interface Routing {
  /** Stores the matching route or mount in the state of the request, for the log, metrics and authentication. Refuses nothing. */
  readonly find: Middleware
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
    refuseUnknown(ctx, next) {
      if (ctx.state.route || ctx.state.mount) return next()
      const start = ctx.path === '/' ? page() : undefined
      if (start !== undefined) ctx.vary('Accept')
      if (start !== undefined && isOfBrowser(ctx)) return ctx.redirect(start)
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
