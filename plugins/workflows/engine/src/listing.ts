import { readdir } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { codeOf } from '@svc/core'
import { fingerprintOf } from './file-fingerprint.ts'

/** A folder of workflow files, or one such file. */
export interface Source {
  readonly root: string
  /** Whether files of code are imported from it. */
  readonly code: boolean
}

/** A file, and the source it is, or lies below. */
export interface Place extends Source {
  readonly path: string
}

/** What lies below some folders. */
export interface Listing {
  readonly places: readonly Place[]
  /** By name without ending; of two the first. */
  readonly byName: ReadonlyMap<string, Place>
  /** Folders that were looked into, as they were. */
  readonly stamps: ReadonlyMap<string, string>
}

const DEEPEST = 5

/** Lists the files of sources, each once; looks into folders again only when one has changed. */
export function openListing(sources: readonly Source[], isWanted: (path: string) => boolean): () => Promise<Listing> {
  let kept: Listing | undefined
  return async () => {
    if (kept && isSame(kept)) return kept
    const stamps = new Map<string, string>()
    const found = await Promise.all(
      sources.map(async source => (await below(source.root, stamps)).map(path => ({ ...source, path })))
    )
    const wanted = found.flat().filter(({ path }) => isWanted(path))
    const places = [...new Map(wanted.toReversed().map(place => [place.path, place])).values()].toReversed()
    const byName = new Map(places.toReversed().map(place => [basename(place.path, extname(place.path)), place]))
    return (kept = { places, byName, stamps })
  }
}

function isSame({ stamps }: Listing): boolean {
  for (const [folder, stamp] of stamps) if (fingerprintOf(folder) !== stamp) return false
  return true
}

/** The files below a folder, or the file itself. `stamps` are taken before it is read: a change meanwhile is seen the next time. */
async function below(folder: string, stamps: Map<string, string>, depth = 0): Promise<string[]> {
  stamps.set(folder, fingerprintOf(folder))
  const entries = await readdir(folder, { withFileTypes: true }).catch(error => (codeOf(error) === 'ENOTDIR' ? undefined : []))
  if (entries === undefined) return [folder]
  const lists = await Promise.all(
    entries
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(async one => {
        const path = join(folder, one.name)
        if (!one.isDirectory()) return [path]
        return one.name.startsWith('.') || depth >= DEEPEST ? [] : below(path, stamps, depth + 1)
      })
  )
  return lists.flat()
}
