import type { AuthScheme, Route, SecurityScheme } from '@svc/core/contracts'

/** The credentials of a server, as OpenAPI has them. */
export interface Security {
  readonly schemes: Readonly<Record<string, SecurityScheme>>
  /** What an operation asks for: any one of the schemes, with the scope of its route. */
  of(route: Pick<Route, 'scope'>): { readonly security?: readonly Readonly<Record<string, readonly string[]>>[] }
}

const WHEN = 'Asked for where `server.auth.enabled` is true.'

export function securityOf(schemes: readonly (readonly [string, AuthScheme])[]): Security {
  const shown = schemes.flatMap(([name, { shown: one }]) => (one ? [[keyOf(name), one] as const] : [])).toSorted(byName)
  return {
    schemes: Object.fromEntries(
      shown.map(([name, one]) => [name, { ...one, description: [one.description, WHEN].join(' ').trim() }])
    ),
    of({ scope }) {
      if (scope === undefined) return { security: [] }
      return shown.length > 0 ? { security: shown.map(([name]) => ({ [name]: [scope] })) } : {}
    },
  }
}

/** A key of `components`, whatever a plugin calls its scheme. */
const keyOf = (name: string) => name.replaceAll(/[^\w.-]/g, '_')

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1)
