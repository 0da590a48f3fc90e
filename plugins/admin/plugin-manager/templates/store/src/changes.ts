import type { StoreChange } from '@svc/core/contracts'
import { storeUnavailable } from '@svc/storage-kit'

/** Maximum number of keys that wait for a slow reader, each with its last change. */
const WAITING = 100_000

//js: /** @typedef {{ collection: string, waiting: Map<string, import('@svc/core/contracts').StoreChange>, ended: boolean, slow: boolean, wake: () => void }} Watcher */
interface Watcher {
  readonly collection: string
  readonly waiting: Map<string, StoreChange>
  ended: boolean
  slow: boolean
  wake: () => void
}

/** Passes changes to watchers. */
export const createChanges = () => {
  //js: /** @type {Set<Watcher>} */
  const watchers = new Set<Watcher>()
  //js: /** @type {(watcher: Watcher) => void} */
  const end = (watcher: Watcher): void => {
    watcher.ended = true
    watchers.delete(watcher)
    watcher.wake()
  }
  return {
    //js: /** @param {readonly import('@svc/core/contracts').StoreChange[]} changes */
    notify(changes: readonly StoreChange[]): void {
      for (const change of changes)
        for (const watcher of watchers) {
          if (watcher.collection !== change.collection) continue
          // moves the key to the end: the order of the last changes is kept
          watcher.waiting.delete(change.key)
          watcher.waiting.set(change.key, change)
          watcher.slow = watcher.waiting.size > WAITING
          if (watcher.slow) end(watcher)
          else watcher.wake()
        }
    },
    //js: /** @param {string} collection @param {AbortSignal} signal */
    watch(collection: string, signal: AbortSignal): AsyncIterable<StoreChange> {
      //js: /** @type {Watcher} */
      const watcher: Watcher = { collection, waiting: new Map(), ended: signal.aborted, slow: false, wake: () => {} }
      if (!signal.aborted) watchers.add(watcher)
      const abort = () => end(watcher)
      signal.addEventListener('abort', abort, { once: true })
      return read(watcher, () => {
        end(watcher)
        signal.removeEventListener('abort', abort)
      })
    },
    close(): void {
      for (const watcher of watchers) end(watcher)
    },
  }
}

//js: /** @param {Watcher} watcher @param {() => void} done */
async function* read(watcher: Watcher, done: () => void): AsyncGenerator<StoreChange> {
  try {
    while (!watcher.ended) {
      const [change] = watcher.waiting.values()
      if (change) {
        watcher.waiting.delete(change.key)
        yield change
        continue
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      watcher.wake = () => resolve(undefined)
      await promise
    }
    if (watcher.slow) throw storeUnavailable('this watcher fell too far behind', 'Read the present state and watch again')
  } finally {
    done()
  }
}
