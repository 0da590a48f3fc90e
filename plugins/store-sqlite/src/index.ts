import { join, resolve } from 'node:path'
import { definePlugin, schema, svcHome } from '@svc/core'
import { Checks, Store } from '@svc/core/contracts'
import { createCheck } from './check.ts'
import { createSqliteStore } from './store.ts'

interface SqliteConfig {
  /** The database file. Default `<svc home>/svc.db`. */
  path?: string
  /** Milliseconds to wait for a file that another program has locked. */
  busy_timeout_ms: number
}

/** The embedded store: one file, durable, shared by the processes of one machine. */
export default definePlugin({
  section: 'store',
  config: schema<SqliteConfig>({
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
  }),
  provides: Store,
  setup(scope) {
    const path = resolve(scope.config.path ?? join(svcHome(), 'svc.db'))
    const store = scope.use(createSqliteStore({ path, busyMs: scope.config.busy_timeout_ms }))
    scope.add(Checks, 'database', createCheck(store))
    return store
  },
})
