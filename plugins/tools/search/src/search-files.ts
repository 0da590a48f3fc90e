import { lstat } from 'node:fs/promises'
import {
  inWords,
  isOurs,
  newTally,
  type Opened,
  openFileIn,
  openPlace,
  type Place,
  readWhole,
  type Roots,
  type Visit,
  walk,
  type WalkTally,
} from '@svc/safe-fs'
import { type Search, searchLines } from './search-lines.ts'
import type { SearchConfig } from './settings.ts'

/** What a search came by. */
export interface Tally extends WalkTally {
  files: number
  bytes: number
  binary: number
  large: number
  /** Why it ended before it was through. */
  ended?: 'matches' | 'time' | 'bytes'
}

/** A search in files: which of them, and what they came to. */
export interface FileSearch extends Search {
  readonly limits: SearchConfig
  readonly ignored: boolean
  /** Whether a file is to be searched, by its path from the start. */
  fits(path: string): boolean
  readonly tally: Tally
}

export const noTally = (): Tally => ({ ...newTally(), files: 0, bytes: 0, binary: 0, large: 0 })

/** Searches a file, or a directory and all below it. */
export async function searchPlace(roots: Roots, start: Place, inner: string, search: FileSearch): Promise<void> {
  const { signal } = search
  await inWords(start.shown, signal, async () => {
    if ((await lstat(start.real)).isDirectory()) return searchBelow(roots, start, inner, search)
    await using opened = await openPlace(roots, start, 'file')
    await searchOpened(opened, start.shown, search)
  })
}

async function searchBelow(roots: Roots, start: Place, inner: string, search: FileSearch): Promise<void> {
  const { signal, ignored, limits, tally } = search
  for await (const visit of walk(roots, start, { signal, ignored, entries: limits.max_entries }, tally)) {
    if (search.isLate()) tally.ended ??= 'time'
    if (tally.ended) return
    if (visit.type === 'file' && search.fits(inner + visit.path)) await searchVisit(visit, search)
  }
}

async function searchVisit({ folder, name, shown }: Visit, search: FileSearch): Promise<void> {
  try {
    await using opened = await openFileIn(folder, name, shown)
    await searchOpened(opened, shown, search)
  } catch (error) {
    search.signal.throwIfAborted()
    // Taken away meanwhile, or not to be read by us: the others are searched all the same.
    if (!isOurs(error)) throw error
    search.tally.unreadable++
  }
}

const LOOKED_AT = 8192

async function searchOpened(opened: Opened, shown: string, search: FileSearch): Promise<void> {
  const { tally, limits, signal } = search
  const bytes = await readWhole(opened, limits.max_file_bytes, signal)
  if (!bytes) return void tally.large++
  tally.files++
  tally.bytes += bytes.length
  if (tally.bytes > limits.max_bytes) tally.ended ??= 'bytes'
  if (bytes.subarray(0, LOOKED_AT).includes(0)) return void tally.binary++
  if (await searchLines(shown, decoder.decode(bytes), search))
    tally.ended ??= search.matches.length === search.most ? 'matches' : 'time'
}

const decoder = new TextDecoder()
