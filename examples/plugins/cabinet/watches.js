/** How often watchers poll for changes of other processes. */
const LOOK_MS = 50
/** How long changes are kept. Watchers read more often. */
const NOTED_MS = 3_600_000

/**
 * Changes for watchers in all processes. A watcher stores only its position in the change list, so a slow watcher costs no memory.
 * @param {ReturnType<typeof import('./drawers.js').openDrawers>} drawers
 * @param {ReturnType<typeof import('@svc/storage-kit').createCatalog>} catalog
 */
export function createWatches({ db }, catalog) {
  const forget = db.prepare('DELETE FROM changes WHERE at < ?')
  const put = db.prepare('INSERT OR REPLACE INTO changes (collection, key, at) VALUES (?, ?, ?)')
  const last = db.prepare('SELECT coalesce(max(seq), 0) AS seq FROM changes')
  const since = db.prepare(
    'SELECT seq, changes.key, version, value FROM changes LEFT JOIN records USING (collection, key) WHERE collection = ? AND seq > ? ORDER BY seq LIMIT 100'
  )
  /** @type {Set<() => void>} */
  const waiting = new Set()
  let isShut = false

  async function* changes(collection, place, signal) {
    while (!isShut && !signal.aborted) {
      const rows = since.all(collection, place)
      for (const { seq, key, version, value } of rows) {
        place = seq
        yield version === null ? { collection, key, version: 0 } : { collection, key, version, value: JSON.parse(value) }
        if (isShut || signal.aborted) return
      }
      if (rows.length === 0) await pause(signal)
    }
  }

  const pause = signal =>
    new Promise(resolve => {
      const over = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', over)
        waiting.delete(over)
        resolve()
      }
      const timer = setTimeout(over, LOOK_MS)
      signal.addEventListener('abort', over)
      waiting.add(over)
    })

  const stir = () => {
    for (const over of waiting) over()
  }
  return {
    /** @param {readonly import('@svc/core/contracts').StoreOp[]} ops Runs in the transaction of the operations. Waiting watchers read after the commit. */
    note(ops) {
      const now = Date.now()
      const watched = ops.filter(({ collection }) => collection !== undefined && catalog.collection(collection).watched)
      if (watched.length > 0) forget.run(now - NOTED_MS)
      for (const { collection, key } of watched) put.run(collection, key, now)
      if (watched.length > 0) stir()
    },
    /** @type {(collection: string, signal: AbortSignal) => AsyncIterable<import('@svc/core/contracts').StoreChange>} */
    watch(collection, signal) {
      catalog.collection(collection)
      return changes(collection, last.get().seq, signal)
    },
    close() {
      isShut = true
      stir()
    },
  }
}
