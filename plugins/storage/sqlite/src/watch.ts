import { codeOf } from '@svc/core'
import type { StoreChange } from '@svc/core/contracts'
import { fellBehind } from './errors.ts'
import type { FeedPlace, FeedRow, Reader } from './reader.ts'

/** Notifies watchers of changes in the file. A watcher stores only its position in the feed, however slow it is. */
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

/** Interval of checks for commits of other processes while a watcher exists. */
const LOOK_MS = 50
const PAGE = 64

/** Creates the watches over a reader. */
export function createWatches(reader: Reader): Watches {
  const watchers = new Set<Watcher>()
  let timer: NodeJS.Timeout | undefined
  let seen = ''
  let end: FeedPlace | undefined

  const stir = (watcher: Watcher) => {
    watcher.stirred = true
    watcher.wake?.()
  }
  /** Most commits change no watched collection: one look at the end of the feed spares a look by each watcher. */
  const stirAll = async () => {
    if (watchers.size === 0) return
    // After errors of the file, each watcher retries by itself.
    const now = await reader.reading(reads => reads.feedEnd()).catch(() => undefined)
    if (now !== undefined && now.seq === end?.seq && now.file === end.file) return
    end = now
    watchers.forEach(stir)
  }
  const look = async () => {
    const version = await reader.reading(reads => reads.dataVersion()).catch(() => '')
    if (version === seen && version !== '') return
    seen = version
    await stirAll()
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
      // Awaited with the first item, which may never be requested.
      begin.catch(() => {})
      if (!watcher.ended) join(watcher)
      const abort = () => leave(watcher)
      signal.addEventListener('abort', abort, { once: true })
      return changes(reader, collection, watcher, begin, () => {
        leave(watcher)
        signal.removeEventListener('abort', abort)
      })
    },
    stir: () => void stirAll(),
    close() {
      for (const watcher of watchers) leave(watcher)
    },
  }
}

async function* changes(
  reader: Reader,
  collection: string,
  watcher: Watcher,
  begin: Promise<FeedPlace>,
  done: () => void
): AsyncGenerator<StoreChange> {
  try {
    for (let place = await begin; !watcher.ended; ) {
      watcher.stirred = false
      const rows = await rowsOf(reader, collection, place)
      if (!rows) throw fellBehind()
      for (const row of rows) {
        place = { ...place, seq: row.seq }
        yield changeOf(collection, row)
        if (watcher.ended) return
      }
      if (rows.length === 0) await stirred(watcher)
    }
  } finally {
    done()
  }
}

/** During errors of the file nothing is read; the feed has the changes after the fix. */
async function rowsOf(reader: Reader, collection: string, place: FeedPlace): Promise<FeedRow[] | undefined> {
  try {
    return await reader.reading(reads => reads.feed(collection, place, PAGE))
  } catch (error) {
    if (codeOf(error) !== 'STORE_UNAVAILABLE') throw error
    return []
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
