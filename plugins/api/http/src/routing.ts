import { createRequire } from 'node:module'
import { type Log, type SlotView, show } from '@svc/core'
import type { HttpMethod, Mount, Route } from '@svc/core/contracts'
import type { Bound, Context, Middleware, RequestState } from './context.ts'
import { methodNotAllowed, routeInvalid, routeUnknown } from './errors.ts'
import { createChecks } from './body.ts'

// Its module for `import` reads all names of node:http: see listener.ts.
const { Router } = createRequire(import.meta.url)('@koa/router') as typeof import('@koa/router')

/** Finds routes by method and path. */
export interface Routing {
  /** Notes the route or mount of a request in its state, without judging: log, metrics and authentication need to know. */
  readonly find: Middleware
  /** Refuses what no route answers. Throws NOT_FOUND, METHOD_NOT_ALLOWED. */
  readonly refuseUnknown: Middleware
}

/** What routes are found among. */
export interface RoutingParts {
  readonly routes: SlotView<Route>
  readonly mounts: SlotView<Mount>
  /** Whether a plugin runs in a process of its own. */
  readonly isIsolated: (plugin: string | undefined) => boolean
  readonly log: Log
}

/** The routers of the routes as they are now. */
interface Routers {
  readonly version: number
  readonly own: Middleware
  readonly isolated: Middleware
}

/**
 * Two routers of @koa/router: one for the server's own routes, one for those of isolated plugins, which get the paths that are left. A path of the server, of a
 * mount or of a route of a plugin in its process, is never an isolated plugin's. Routes come and go: the routers are made again when the slot has changed.
 */
export function createRouting(parts: RoutingParts): Routing {
  const { routes, mounts, isIsolated } = parts
  const known = new WeakMap<Route, Bound>()
  let routers: Routers | undefined
  const current = () => {
    const version = routes.version + mounts.version // both only grow
    return routers?.version === version ? routers : (routers = createRouters(parts, known, version))
  }
  const guides = () => {
    const own = routes.entries().filter(([name]) => !isIsolated(routes.owner(name)))
    return [...mounts.entries(), ...own].filter(([, { guide }]) => guide).map(([, { path }]) => path)
  }
  return {
    find(ctx, next) {
      const { own, isolated } = current()
      return own(ctx, () => {
        if (isMatched(ctx)) return next()
        ctx.state.mount = mountOf(mounts, ctx.path)
        return ctx.state.mount || isReserved(ctx.path) ? next() : isolated(ctx, next)
      })
    },
    refuseUnknown(ctx, next) {
      if (ctx.state.route || ctx.state.mount) return next()
      if (!isMatched(ctx)) throw routeUnknown(ctx.method, ctx.path, guides())
      const allowed = methodsOf(ctx)
      ctx.set('Allow', allowed.join(', '))
      if (ctx.method !== 'OPTIONS') throw methodNotAllowed(ctx.method, allowed)
      ctx.status = 204
    },
  }
}

function createRouters({ routes, isIsolated, log }: RoutingParts, known: WeakMap<Route, Bound>, version: number): Routers {
  const bound = routes.entries().flatMap(([name, route]): Bound[] => {
    const plugin = routes.owner(name)
    try {
      const one = known.get(route) ?? bind(name, route, plugin, isIsolated(plugin))
      known.set(route, one)
      return [one]
    } catch (err) {
      log.error({ err, route: name, plugin }, `the route ${name} is not served: its description is not one of a route`)
      return []
    }
  })
  const [own, isolated] = [bound.filter(one => !one.isIsolated), bound.filter(one => one.isIsolated)]
  const served = withoutTwins([...own, ...isolated], log)
  return {
    version,
    own: routerOf(served.filter(one => !one.isIsolated)),
    isolated: routerOf(served.filter(one => one.isIsolated)),
  }
}

const VERBS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const satisfies Record<
  HttpMethod,
  string
>

/** Of two routes that fit the one with fewer parameters answers: `/a/b` before `/a/:id`. */
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
/** A body crosses to the process of its plugin in one message. */
const LONGEST_ISOLATED = 16 * 1024 * 1024

/** A route of an isolated plugin is counted and limited like every other, and is no guide to the server. */
function bind(name: string, given: Route, plugin: string | undefined, isIsolated: boolean): Bound {
  if (given.accepts !== undefined && !ACCEPTED.includes(given.accepts)) throw routeInvalid(name, `accepts ${show(given.accepts)}`)
  const { uncounted: _, guide: __, bodyLimit, ...rest } = given
  const limit = bodyLimit === undefined ? {} : { bodyLimit: Math.min(bodyLimit, LONGEST_ISOLATED) }
  const route = isIsolated ? { ...rest, ...limit } : given
  return { name, plugin, route, checks: createChecks(route, isIsolated), isIsolated }
}

/** What is found there speaks for the whole server: who holds its certificate, who gives out its tokens (RFC 8615). */
const isReserved = (path: string) => path === '/.well-known' || path.startsWith('/.well-known/')

/** The mount with the longest path that the request's path lies below. */
function mountOf(mounts: SlotView<Mount>, path: string): Mount | undefined {
  if (mounts.size === 0) return undefined
  const above = mounts.entries().filter(([, mount]) => path === mount.path || path.startsWith(`${mount.path}/`))
  return above.toSorted(([, a], [, b]) => b.path.length - a.path.length)[0]?.[1]
}

/** The routes that @koa/router has found for the path, whatever their method. */
const matchedOf = (ctx: Context) => (ctx.matched ?? []) as readonly { readonly methods: string[] }[]
const isMatched = (ctx: Context) => matchedOf(ctx).length > 0

const methodsOf = (ctx: Context) => [...new Set([...matchedOf(ctx).flatMap(({ methods }) => methods.toSorted()), 'OPTIONS'])]

function withoutTwins(all: readonly Bound[], log: Log): Bound[] {
  const seen = new Map<string, string>()
  return all.filter(({ name, plugin, route, isIsolated }) => {
    const place = `${route.method} ${route.path.replaceAll(/:[^/]+/g, ':')}`
    const first = seen.get(place)
    const isLost = isIsolated && isReserved(route.path)
    if (first || isLost)
      log.error(
        { route: name, first, plugin },
        first
          ? `the route ${name} is not served: ${first} has ${route.method} ${route.path} already`
          : `the route ${name} is not served: only plugins in the process of the server have paths below /.well-known`
      )
    else seen.set(place, name)
    return first === undefined && !isLost
  })
}
