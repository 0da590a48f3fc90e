import { storeUnavailable } from '@svc/space'

/** Changes that may wait for one slow reader. */
const WAITING = 100_000

/** Hands changes to those who watch. */
export function createWatches() {
  const watchers = new Set()
  return {
    /** @param {readonly import('@svc/core/contracts').StoreChange[]} changes */
    tell(changes) {
      for (const change of changes) for (const watcher of watchers) watcher.take(change)
    },
    /** @type {(collection: string, signal: AbortSignal) => AsyncIterable<import('@svc/core/contracts').StoreChange>} */
    watch(collection, signal) {
      /** @type {() => void} */
      let leave
      const start = controller => {
        const end = () => {
          leave()
          controller.close()
        }
        const take = change => {
          if (change.collection !== collection) return
          if (controller.desiredSize > 0) return controller.enqueue(change)
          leave()
          controller.error(storeUnavailable('this watcher fell too far behind', 'read what is there and watch again'))
        }
        const watcher = { take, end }
        leave = () => {
          watchers.delete(watcher)
          signal.removeEventListener('abort', end)
        }
        watchers.add(watcher)
        signal.addEventListener('abort', end)
        if (signal.aborted) end()
      }
      return new ReadableStream({ start, cancel: () => leave() }, { highWaterMark: WAITING })
    },
    close() {
      for (const { end } of watchers) end()
    },
  }
}
