import { definePlugin, type Log, systemContext } from '@svc/core'
import { Cache, CacheAreas, Store } from '@svc/core/contracts'
import { createCache, type Entries } from '@svc/storage-kit/cache'
import { CONFIG } from './config.ts'
import { noStore } from './errors.ts'
import { MemoryEntries } from './memory.ts'

/** Keeps values of plugins for a while. */
export default definePlugin({
  section: 'cache',
  config: CONFIG,
  requires: { areas: CacheAreas },
  optional: { store: Store },
  provides: Cache,
  async setup(scope, { areas, store }) {
    const { in: place, max_bytes: maxBytes } = scope.config
    let entries: Entries
    if (place === 'store') entries = await openStored(store, scope)
    else {
      const memory = new MemoryEntries({ maxBytes })
      scope.tap(CacheAreas.changed, ({ removed }) => memory.forget(removed))
      entries = memory
    }
    return createCache({ areas, entries, maxBytes })
  },
})

async function openStored(
  store: Store | undefined,
  { name, log, signal }: { readonly name: string; readonly log: Log; readonly signal: AbortSignal }
): Promise<Entries> {
  if (!store) throw noStore(name)
  const [{ StoredEntries, SPACE }, { openSpace }] = await Promise.all([import('./stored.ts'), import('@svc/storage-kit')])
  const lasting = systemContext(signal, 'cache')
  await openSpace(store, SPACE, {}, lasting)
  const stored = new StoredEntries({ store, log, lasting })
  stored.begin()
  return stored
}

export type { CacheConfig } from './config.ts'
