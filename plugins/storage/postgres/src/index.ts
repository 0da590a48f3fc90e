import { asSvcError, definePlugin, type Log, type SvcError } from '@svc/core'
import { Checks, Counts, Postgres, ProtectedPaths, Store, StoreAdmin, StoreCounts, TextIndex } from '@svc/core/contracts'
import { loginFiles } from '@svc/storage-kit/server-login'
import { createCheck } from './check.ts'
import { config, connectionOf, type PostgresConfig } from './config.ts'
import { checkConnections } from './connections.ts'
import { startFailure } from './errors.ts'
import { createPostgresStore } from './store.ts'

/** The store of many machines: PostgreSQL. */
export default definePlugin({
  section: 'store',
  config,
  provides: Store,
  alsoProvides: [Counts, StoreCounts, TextIndex, StoreAdmin, Postgres],
  check: async settings => problemsOf(settings),
  async setup(scope) {
    const options = connectionOf(scope.config)
    const store = scope.use(createPostgresStore(options))
    // a person at a terminal sees why the start takes long
    const waiting = setTimeout(() => scope.log.info({}, waitText(options)), NOTE_MS)
    try {
      await checkConnections(options, problem => warn(scope.log, problem))
      // A problem with the database fails the start; later it fails each request until it is fixed.
      await store.start()
    } catch (error) {
      throw startFailure(error, scope.name)
    } finally {
      clearTimeout(waiting)
    }
    const paths = loginFiles(scope.config)
    if (paths.length > 0) scope.add(ProtectedPaths, 'store', { paths, owner: 'the store of this server' })
    scope.add(Checks, 'database', createCheck(store))
    return store
  },
})

/** What is wrong with the section, before anything connects. */
function problemsOf(settings: PostgresConfig): SvcError[] {
  try {
    connectionOf(settings)
    return []
  } catch (error) {
    return [asSvcError(error, 'STORE_CONFIG_INVALID')]
  }
}

/** A start that takes longer says what it waits for. */
const NOTE_MS = 1_000

function waitText({ target, waitMs }: ReturnType<typeof connectionOf>): string {
  const hosts = target.hosts.map(({ host, port }) => `${host}:${port}`).join(', ')
  return `waiting for PostgreSQL at ${hosts}, up to ${Math.round(Math.max(target.connectMs, waitMs ?? 0) / 1000)} s`
}

const warn = (log: Log, problem: string) => log.warn({}, problem)
