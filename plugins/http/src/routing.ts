import { createRequire } from 'node:module'
import type { Log, SlotView } from '@svc/core'
import type { Mount, Route } from '@svc/core/contracts'
import { type Checks, createChecks } from './validation.ts'

// Its module for `import` reads all names of node:http: see socket.ts.
const { Router } = createRequire(import.meta.url)('@koa/router') as typeof import('@koa/router')

/** A route with what is made once for it. */
export interface Bound {
  readonly name: string
  /** Who added it. */
  readonly plugin: string | undefined
  readonly route: Route
  readonly checks: Checks
  /** Its plugin runs in a process of its own: it is no part of the server, and must not act as one. */
  readonly isIsolated: boolean
}

/** What a path leads to. */
interface Found {
  readonly bound?: Bound
  /** What takes the raw request, where no route has the path. */
  readonly mount?: Mount
  readonly params: Readonly<Record<string, string>>
  /** Methods that the path has; empty: there is no such path. */
  readonly allowed: readonly string[]
}

export interface Routing {
  find(method: string, path: string): Found
  /** Paths where one reads how the server is used. */
  guides(): readonly string[]
}

const NOWHERE: Found = { params: {}, allowed: [] }
const nobody = () => {}

/** What routes are found among. */
export interface RoutingParts {
  readonly routes: SlotView<Route>
  readonly mounts: SlotView<Mount>
  /** Whether a plugin runs in a process of its own. */
  readonly isIsolated: (plugin: string | undefined) => boolean
  readonly log: Log
}

/**
 * Finds routes by method and path. Routes come and go: the router is made again when the slot has changed. What the server has itself, a mount or a route of a
 * plugin in its own process, no isolated plugin can take, whatever comes first.
 */
export function createRouting({ routes, mounts, isIsolated, log }: RoutingParts): Routing {
  const known = new WeakMap<Route, Bound>()
  let table = new Map<string, Bound>()
  let router = new Router()
  let plain = new Map<string, Found>()
  let built = -1
  const boundOf = (name: string, route: Route): Bound[] => {
    const plugin = routes.owner(name)
    try {
      const bound = known.get(route) ?? bind(name, route, plugin, isIsolated(plugin))
      known.set(route, bound)
      return [bound]
    } catch (err) {
      log.error({ err, route: name, plugin }, `the route ${name} is not served: its description is not one of a route`)
      return []
    }
  }
  const build = (version: number) => {
    built = version
    const all = sorted(routes.entries().flatMap(([name, route]) => boundOf(name, route)))
    table = new Map(withoutTwins(all, log).map(bound => [bound.name, bound]))
    router = new Router({ sensitive: true })
    for (const [name, { route }] of table) router.register(route.path, [route.method], nobody, { name })
    // most requests need no pattern
    const isPlain = ({ route, isIsolated }: Bound) => !isIsolated && /^[\w./-]+$/.test(route.path)
    plain = new Map([...table.values()].filter(isPlain).map(bound => [placeOf(bound.route), { ...NOWHERE, bound }]))
  }
  /** Isolated plugins have the paths that are left. */
  const layersOf = (method: string, path: string) => {
    const all = router.match(path, method).path.map(layer => ({ layer, bound: table.get(layer.name ?? '')! }))
    const own = all.filter(({ bound }) => !bound.isIsolated)
    return own.length > 0 || isReserved(path) || mountOf(mounts, path) ? own : all
  }
  return {
    guides() {
      const own = routes.entries().filter(([name]) => !isIsolated(routes.owner(name)))
      return [...mounts.entries(), ...own].filter(([, { guide }]) => guide).map(([, { path }]) => path)
    },
    find(method, path) {
      const version = routes.version + mounts.version // both only grow
      if (built !== version) build(version)
      const there = plain.get(`${method} ${path}`)
      if (there) return there
      const layers = layersOf(method, path)
      const { layer, bound } = layers.find(one => one.layer.methods.includes(method)) ?? {}
      if (layer)
        return {
          bound,
          params: layer.paramNames.length > 0 ? layer.params(path, layer.captures(path)) : NOWHERE.params,
          allowed: [],
        }
      if (layers.length > 0) return { params: NOWHERE.params, allowed: methodsOf(layers.map(one => one.layer)) }
      const mount = mountOf(mounts, path)
      if (!mount) return NOWHERE
      const found = { ...NOWHERE, mount }
      // its methods are those that Node knows: what is kept has an end
      if (path === mount.path) plain.set(`${method} ${path}`, found)
      return found
    },
  }
}

/** A body crosses to the process of its plugin in one message. */
const LONGEST_ISOLATED = 16 * 1024 * 1024

/** A route of an isolated plugin is counted and limited like every other, and is no guide to the server. */
function bind(name: string, given: Route, plugin: string | undefined, isIsolated: boolean): Bound {
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

const placeOf = ({ method, path }: Route) => `${method} ${path}`

const methodsOf = (layers: readonly { methods: string[] }[]) => [
  ...new Set([...layers.flatMap(layer => layer.methods.toSorted()), 'OPTIONS']),
]

/** Those of the server before those of isolated plugins, then `/a/b` before `/a/:id`, in whatever order they were added. */
const sorted = (all: readonly Bound[]) => all.toSorted((a, b) => rank(a) - rank(b))
const rank = ({ route, isIsolated }: Bound) =>
  (isIsolated ? ISOLATED_LAST : 0) + route.path.split('/').filter(part => part.startsWith(':')).length
const ISOLATED_LAST = 1_000

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
