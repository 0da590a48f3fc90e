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

/** Finds routes by method and path. Routes come and go: the router is made again when the slot has changed. */
export function createRouting(routes: SlotView<Route>, mounts: SlotView<Mount>, log: Log): Routing {
  const known = new WeakMap<Route, Bound>()
  let table = new Map<string, Bound>()
  let router = new Router()
  let plain = new Map<string, Found>()
  let built = -1
  const boundOf = (name: string, route: Route) => {
    const bound = known.get(route) ?? { name, plugin: routes.owner(name), route, checks: createChecks(route) }
    known.set(route, bound)
    return bound
  }
  const build = (version: number) => {
    built = version
    table = new Map(sorted(withoutTwins(routes, log)).map(([name, route]) => [name, boundOf(name, route)]))
    router = new Router({ sensitive: true })
    for (const [name, { route }] of table) router.register(route.path, [route.method], nobody, { name })
    // most requests need no pattern
    const isPlain = ({ route }: Bound) => /^[\w./-]+$/.test(route.path)
    plain = new Map([...table.values()].filter(isPlain).map(bound => [placeOf(bound.route), { ...NOWHERE, bound }]))
  }
  return {
    guides: () => [...mounts.entries(), ...routes.entries()].filter(([, { guide }]) => guide).map(([, { path }]) => path),
    find(method, path) {
      const version = routes.version + mounts.version // both only grow
      if (built !== version) build(version)
      const there = plain.get(`${method} ${path}`)
      if (there) return there
      const { path: layers, pathAndMethod } = router.match(path, method)
      const layer = pathAndMethod[0]
      const bound = layer && table.get(layer.name ?? '')
      if (bound)
        return {
          bound,
          params: layer.paramNames.length > 0 ? layer.params(path, layer.captures(path)) : NOWHERE.params,
          allowed: [],
        }
      if (layers.length > 0) return { params: NOWHERE.params, allowed: methodsOf(layers) }
      const mount = mountOf(mounts, path)
      if (!mount) return NOWHERE
      const found = { ...NOWHERE, mount }
      // its methods are those that Node knows: what is kept has an end
      if (path === mount.path) plain.set(`${method} ${path}`, found)
      return found
    },
  }
}

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

/** `/a/b` before `/a/:id`, whoever was added first. */
const sorted = (entries: [string, Route][]) => entries.toSorted(([, a], [, b]) => rank(a) - rank(b))
const rank = ({ path }: Route) => path.split('/').filter(part => part.startsWith(':')).length

function withoutTwins(routes: SlotView<Route>, log: Log): [string, Route][] {
  const seen = new Map<string, string>()
  return routes.entries().filter(([name, route]) => {
    const place = `${route.method} ${route.path.replaceAll(/:[^/]+/g, ':')}`
    const first = seen.get(place)
    if (first)
      log.error(
        { route: name, first, plugin: routes.owner(name) },
        `the route ${name} is not served: ${first} has ${route.method} ${route.path} already`
      )
    else seen.set(place, name)
    return first === undefined
  })
}
