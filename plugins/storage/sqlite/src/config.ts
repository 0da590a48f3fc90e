import { join, resolve } from 'node:path'
import { schema, svcHome } from '@svc/core'

export interface SqliteConfig {
  /** The database file. Default `<svc home>/svc.db`. */
  path?: string
  /** Milliseconds to wait for a file that another program has locked. */
  busy_timeout_ms: number
}

/** The section `store`. */
export const config = schema<SqliteConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    path: { type: 'string', minLength: 1, description: 'The database file; default <svc home>/svc.db.' },
    busy_timeout_ms: {
      type: 'integer',
      minimum: 0,
      maximum: 600_000,
      default: 10_000,
      description: 'Milliseconds to wait for a file that another program has locked.',
    },
  },
})

/** The path of the store's file, from the section `store` or the svc home. */
export const fileOf = ({ path }: { readonly path?: string }): string => resolve(path ?? join(svcHome(), 'svc.db'))
