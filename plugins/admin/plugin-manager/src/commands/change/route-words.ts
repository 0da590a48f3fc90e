import { type Manifest, type RouteManifest, routesOf } from '@svc/core'

/** The routes of a plugin, in words: those that need no credential first. */
export function routeWords(contributes: Manifest['contributes']): string[] {
  const all = routesOf({ contributes }).map(([, route]) => route)
  return [...all.filter(isOpen), ...all.filter(one => !isOpen(one))].map(wordsOf)
}

const isOpen = ({ scope }: RouteManifest) => scope === undefined

const wordsOf = ({ method, path, scope }: RouteManifest) =>
  `${method} ${path}: ${scope === undefined ? 'OPEN to every client, without a credential' : `needs the scope ${scope}`}`
