import { systemContext, type CallContext } from '@svc/core'
import type { StoreUnderTest } from '@svc/testing'
import { type Postgres, startTcpProxy } from '@svc/testing/engines'
import { connectionOf, type PostgresConfig, withDefaults } from '../src/config.ts'
import { createPostgresStore, type PostgresStore } from '../src/store.ts'

/** A context that ends with the test process. */
export const ctx: CallContext = systemContext(new AbortController().signal)

/** A store with the given settings, as the plugin would create it. */
export const storeWith = (config: Partial<PostgresConfig>): PostgresStore =>
  createPostgresStore(connectionOf(withDefaults(config)))

let schemas = 0
/** A schema that no other test uses. */
export const newSchema = (): string => `test_${process.pid}_${++schemas}`

interface ShapeOptions {
  /** The URL of the first handle goes through a proxy, which can cut it. */
  readonly cuts?: boolean
  /** Where connections go, when it is not PostgreSQL itself. */
  readonly url?: string
  readonly directUrl?: string
  readonly standbyUrl?: () => Promise<string>
}

/** Opens stores in new schemas of one database: `storeKit(storesOf(() => postgres))`. */
export function storesOf(postgres: () => Postgres, options: () => ShapeOptions = () => ({})) {
  return async () => {
    const { cuts = false, url = postgres().url, directUrl, standbyUrl } = options()
    const schema = newSchema()
    const stack = new AsyncDisposableStack()
    const proxy = cuts ? stack.use(await startTcpProxy(postgres(), { protocol: 'postgres' })) : undefined
    let handles: PostgresStore[] = []
    const another = (to = proxy?.url ?? url) => {
      const store = storeWith({ url: to, schema, ...(directUrl === undefined ? {} : { direct_url: directUrl }) })
      handles.push(store)
      return store
    }
    const close = async () => {
      const open = handles
      handles = []
      await Promise.all(open.map(store => store[Symbol.asyncDispose]()))
    }
    const store = another()
    return {
      store,
      counts: store,
      second: async () => another(url),
      async reopen() {
        await close()
        return another()
      },
      ...(proxy ? { cut: async () => proxy.cut() } : {}),
      ...(standbyUrl ? { readOnly: async () => another(await standbyUrl()) } : {}),
      async [Symbol.asyncDispose]() {
        await close()
        await postgres().query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`)
        await stack.disposeAsync()
      },
    } satisfies StoreUnderTest & { counts: PostgresStore }
  }
}
