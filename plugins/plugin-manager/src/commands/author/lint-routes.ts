import { routesOf } from '@svc/core'
import { matchesPattern } from '@svc/core/isolation'
import type { Finding, Linted } from './lint.ts'

/** Routes that the manifest declares and a server would not serve. */
export function routeFindings({ info }: Linted): Finding[] {
  if (info === undefined) return []
  const { public_routes: open = [] } = info.manifest.permissions ?? {}
  return routesOf(info.manifest).flatMap(([name, { path, scope }]): Finding[] => [
    ...(scope === undefined && !open.some(word => matchesPattern(word, name)) ? [routeOpen(name, path)] : []),
    ...(/^\/\.well-known(\/|$)/.test(path) ? [routeReserved(name, path)] : []),
  ])
}

const routeOpen = (name: string, path: string): Finding => ({
  level: 'error',
  code: 'PERMISSION_MISSING',
  message: `the route "${name}" (${path}) has no scope, so it needs no credential, and the manifest does not ask for the permission`,
  hint: `give it a scope, or ask for the permission: "permissions": { "public_routes": ["${name}"] }`,
  where: 'package.json',
})

const routeReserved = (name: string, path: string): Finding => ({
  level: 'warning',
  code: 'ROUTE_RESERVED',
  message: `the route "${name}" (${path}) is not served where the plugin runs in a process of its own`,
  hint: 'choose a path that is not below /.well-known',
  where: 'package.json',
})
