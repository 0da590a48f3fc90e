import { storeUnavailable } from '@svc/storage-kit'
import type { StoreChange } from '@svc/core/contracts'

/** Maximum number of keys that wait for a slow reader, each with its last change. */
const WAITING = 100_000

interface Watcher {
  readonly collection: string
  readonly waiting: Map<string, StoreChange>
  wake?: () => void
  ended: boolean
  tooSlow: boolean
}

/** Passes changes to watchers. */
export interface ChangeNotifier {
  notify(changes: readonly StoreChange[]): void
  /** Changes from this call on, until the signal aborts or the store closes. */
  watch(collection: string, signal: AbortSignal): AsyncIterable<StoreChange>
  close(): void
}

/** Creates the hub between batches and watchers. */
export function createChanges(): ChangeNotifier {
  const watchers = new Set<Watcher>()
  const end = (watcher: Watcher) => {
    watcher.ended = true
    watchers.delete(watcher)
    watcher.wake?.()
  }
  return {
    notify(changes) {
      if (watchers.size === 0) return
      for (const change of changes)
        for (const watcher of watchers) if (watcher.collection === change.collection) put(watcher, change, end)
    },
    watch(collection, signal) {
      const watcher: Watcher = { collection, waiting: new Map(), ended: signal.aborted, tooSlow: false }
      if (signal.aborted) return read(watcher, () => {})
      watchers.add(watcher)
      const abort = () => end(watcher)
      signal.addEventListener('abort', abort, { once: true })
      return read(watcher, () => {
        end(watcher)
        signal.removeEventListener('abort', abort)
      })
    },
    close() {
      for (const watcher of watchers) end(watcher)
    },
  }
}

function put(watcher: Watcher, change: StoreChange, end: (watcher: Watcher) => void): void {
  // Moves the key to the end: the order of the last changes is kept.
  watcher.waiting.delete(change.key)
  watcher.waiting.set(change.key, change)
  if (watcher.waiting.size > WAITING) {
    watcher.tooSlow = true
    end(watcher)
  }
  watcher.wake?.()
}

async function* read(watcher: Watcher, done: () => void): AsyncGenerator<StoreChange> {
  try {
    while (!watcher.ended) {
      for (const [key, change] of watcher.waiting) {
        watcher.waiting.delete(key)
        yield change
        if (watcher.ended) break
      }
      if (watcher.ended || watcher.waiting.size > 0) continue
      const { promise, resolve } = Promise.withResolvers<void>()
      watcher.wake = resolve
      await promise
    }
    if (watcher.tooSlow) throw storeUnavailable('this watcher fell too far behind', 'Read the present state and watch again')
  } finally {
    done()
  }
}
