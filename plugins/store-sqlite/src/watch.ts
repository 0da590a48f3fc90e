import type { StoreChange } from '@svc/core/contracts'
import { fellBehind } from './errors.ts'
import type { FeedRow, Reader } from './reader.ts'

/** Tells watchers what changed in the file: they keep a place in its feed and nothing else, however slow they are. */
export interface Watches {
  watch(collection: string, signal: AbortSignal): AsyncIterable<StoreChange>
  /** Something may have changed. */
  stir(): void
  close(): void
}

interface Watcher {
  stirred: boolean
  ended: boolean
  wake?: () => void
}

/** How often commits of other processes are looked for, while anybody watches. */
const LOOK_MS = 50
const PAGE = 64

/** Makes the watches over a reader. */
export function createWatches(reader: Reader): Watches {
  const watchers = new Set<Watcher>()
  let timer: NodeJS.Timeout | undefined
  let seen = -1

  const stir = (watcher: Watcher) => {
    watcher.stirred = true
    watcher.wake?.()
  }
  const look = async () => {
    // Trouble with the file reaches the watchers by their own reads.
    const version = await reader.reading(reads => reads.dataVersion()).catch(() => -1)
    if (version === seen && version !== -1) return
    seen = version
    watchers.forEach(stir)
  }
  const join = (watcher: Watcher) => {
    watchers.add(watcher)
    timer ??= setInterval(() => void look(), LOOK_MS)
  }
  const leave = (watcher: Watcher) => {
    watcher.ended = true
    watchers.delete(watcher)
    stir(watcher)
    if (watchers.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return {
    watch(collection, signal) {
      const watcher: Watcher = { stirred: true, ended: signal.aborted }
      const begin = reader.reading(reads => reads.feedEnd())
      // It is awaited with the first item; nobody may ever ask for one.
      begin.catch(() => {})
      if (!watcher.ended) join(watcher)
      const abort = () => leave(watcher)
      signal.addEventListener('abort', abort, { once: true })
      return changes(reader, collection, watcher, begin, () => {
        leave(watcher)
        signal.removeEventListener('abort', abort)
      })
    },
    stir: () => watchers.forEach(stir),
    close() {
      for (const watcher of watchers) leave(watcher)
    },
  }
}

async function* changes(
  reader: Reader,
  collection: string,
  watcher: Watcher,
  begin: Promise<number>,
  done: () => void
): AsyncGenerator<StoreChange> {
  try {
    for (let place = await begin; !watcher.ended; ) {
      watcher.stirred = false
      const rows = await reader.reading(reads => reads.feed(collection, place, PAGE))
      if (!rows) throw fellBehind()
      for (const row of rows) {
        place = row.seq
        yield changeOf(collection, row)
        if (watcher.ended) return
      }
      if (rows.length === 0) await stirred(watcher)
    }
  } finally {
    done()
  }
}

const changeOf = (collection: string, { key, record }: FeedRow): StoreChange => ({
  collection,
  key,
  version: record?.version ?? 0,
  ...(record && { value: record.value }),
})

async function stirred(watcher: Watcher): Promise<void> {
  if (watcher.stirred || watcher.ended) return
  const { promise, resolve } = Promise.withResolvers<void>()
  watcher.wake = resolve
  await promise
}
