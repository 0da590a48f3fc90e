import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { ReadEntry } from 'tar'

/** One entry of an archive, as it stands there: its path may lead anywhere. */
export interface ArchiveEntry {
  readonly path: string
  readonly type: ReadEntry['type']
  readonly size: number
  readonly isExecutable: boolean
  /** Where a link leads; '' for all else. */
  readonly target: string
}

export interface ReadArchive {
  readonly signal?: AbortSignal | undefined
  /** Bytes, unpacked, after which it is given up. */
  readonly most: number
  /** What is done with an entry's content, whole or piece by piece; undefined: it is passed over. */
  readonly onEntry: (entry: ArchiveEntry) => ((chunk: Uint8Array) => void) | undefined
}

/** Reads a .tgz from its first entry to its last, and writes nothing. Throws where it is cut, damaged or too big, and what `onEntry` throws. */
export async function readArchive(file: string, { signal, most, onEntry }: ReadArchive): Promise<void> {
  const { Parser } = await import('tar') // not at the start of a server, which only looks at what is installed
  const faults: unknown[] = []
  const parser = new Parser({ strict: true, onReadEntry: entry => consume(entry, onEntry, faults) })
  parser.on('error', error => faults.push(error))
  const check = () => {
    if (faults.length > 0) throw faults[0]
  }
  async function parse(source: AsyncIterable<Buffer>) {
    let bytes = 0
    for await (const chunk of source) {
      // a second gzip inside would be undone by the parser, out of sight of the limit
      if (bytes === 0 && isPacked(chunk)) throw new Error('it is packed twice')
      bytes += chunk.length
      if (bytes > most) throw tooBig(most)
      parser.write(chunk)
      check()
    }
    parser.end()
    check()
  }
  await pipeline(createReadStream(file), createGunzip(), parse, signal ? { signal } : {})
}

export const tooBig = (most: number): Error => new Error(`it holds more than ${most} bytes`)

/** How gzip and zstd begin. */
const isPacked = (chunk: Buffer) => /^(1f8b|28b52ffd)/.test(chunk.subarray(0, 4).toString('hex'))

function consume(entry: ReadEntry, onEntry: ReadArchive['onEntry'], faults: unknown[]): void {
  try {
    const { path, type, size, mode = 0, linkpath = '' } = entry
    const take = onEntry({ path, type, size, isExecutable: (mode & 0o100) !== 0, target: linkpath })
    if (take) entry.on('data', take)
  } catch (error) {
    faults.push(error)
  }
  entry.resume()
}

export const isFile = ({ type }: ArchiveEntry): boolean => type === 'File' || type === 'OldFile' || type === 'ContiguousFile'

/** Why a path may lead somewhere else than below the folder that it is unpacked in; undefined for a good one. */
export function strayPath(path: string): string | undefined {
  // oxlint-disable-next-line no-control-regex -- these are what it looks for
  if (/[\u0000-\u001f\\]/.test(path)) return 'a backslash or control character in a path'
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'an absolute path'
  return path.split('/').some(part => part === '..' || part === '.') ? 'a path with . or ..' : undefined
}
