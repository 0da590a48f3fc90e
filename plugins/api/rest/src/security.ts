import type { AuthScheme, Route, SecurityScheme } from '@svc/core/contracts'

/** The credentials of a server, as OpenAPI has them. */
export interface Security {
  readonly schemes: Readonly<Record<string, SecurityScheme>>
  /** What an operation asks for: any one of the schemes, with the scope of its route. */
  of(route: Pick<Route, 'scope'>): { readonly security?: readonly Readonly<Record<string, readonly string[]>>[] }
}

const WHEN = 'Asked for where `server.auth.enabled` is true.'

export function securityOf(schemes: readonly (readonly [string, AuthScheme])[]): Security {
  const shown = schemes
    .flatMap(([name, { shown: one, guards, always }]) => (one ? [{ key: keyOf(name), one, guards, always }] : []))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
  return {
    schemes: Object.fromEntries(
      shown.map(({ key, one, always }) => [key, always ? one : { ...one, description: [one.description, WHEN].join(' ').trim() }])
    ),
    of({ scope }) {
      if (scope === undefined) return { security: [] }
      const fit = shown.filter(({ guards }) => guards === undefined || guards === scope)
      return fit.length > 0 ? { security: fit.map(({ key }) => ({ [key]: [scope] })) } : {}
    },
  }
}

/** A key of `components`, whatever a plugin calls its scheme. */
const keyOf = (name: string) => name.replaceAll(/[^\w.-]/g, '_')
