import { definePlugin, messageOf, schema } from '@svc/core'
import { type Check, Checks, Counts, Store, StoreCounts, TextIndex } from '@svc/core/contracts'
import { storeReport } from '@svc/storage-kit'
import { createMemoryStore } from './store.ts'

interface MemoryConfig {
  /** Records and log entries together. */
  max_records: number
  /** Approximate bytes of keys and values. */
  max_bytes: number
  /** Number of counted keys. */
  max_counts: number
  /** Whether a full store evicts the oldest items; otherwise it rejects writes. */
  evict: boolean
}

/** A bounded store for tests and for servers without durable data. */
export default definePlugin({
  section: 'store',
  config: schema<MemoryConfig>({
    type: 'object',
    additionalProperties: false,
    properties: {
      max_records: { type: 'integer', minimum: 1, default: 1_000_000 },
      max_bytes: { type: 'integer', minimum: 1, default: 256 * 1024 * 1024 },
      max_counts: { type: 'integer', minimum: 1, default: 100_000 },
      evict: { type: 'boolean', default: true },
    },
  }),
  provides: Store,
  alsoProvides: [Counts, StoreCounts, TextIndex],
  setup(scope) {
    const { max_records: maxRecords, max_bytes: maxBytes, max_counts: maxCounts, evict } = scope.config
    const store = scope.use(createMemoryStore({ maxRecords, maxBytes, maxCounts, evict }))
    scope.add(Checks, 'database', createCheck(store))
    return store
  },
})

/** Reports in `/health` that the store works and is not durable. */
export function createCheck(store: Pick<Store, 'probe'>): Check {
  return {
    async probe(ctx) {
      try {
        return storeReport(await store.probe(ctx))
      } catch (error) {
        return { status: 'unhealthy', reason: messageOf(error) }
      }
    },
  }
}
