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
  /** It has the bit for another user's or group's rights, or the sticky one. */
  readonly isSpecial: boolean
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
  // another reader might understand it
  parser.on('ignoredEntry', ({ type }) => faults.push(new Error(`it has an entry of a kind that is not understood (${type})`)))
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
    const take = onEntry({
      path,
      type,
      size,
      isExecutable: (mode & 0o100) !== 0,
      isSpecial: (mode & 0o7000) !== 0,
      target: linkpath,
    })
    if (take) entry.on('data', take)
  } catch (error) {
    faults.push(error)
  }
  entry.resume()
}

export const isFile = ({ type }: ArchiveEntry): boolean => type === 'File' || type === 'OldFile' || type === 'ContiguousFile'

/** What file systems take: bytes of a name, and of a path with some left for the folder that it is unpacked in. */
const [MOST_NAME, MOST_PATH] = [255, 2048]

/** Why a path may lead somewhere else than below the folder that it is unpacked in, or be another for another reader; undefined for a good one. */
export function strayPath(path: string): string | undefined {
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\\]/u.test(path)) return 'a backslash, control or hidden character in a path'
  // what could not be decoded: two names may look the same
  if (path.includes('\ufffd')) return 'a path that is not UTF-8'
  if (Buffer.byteLength(path) > MOST_PATH) return 'a path that is too long'
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'an absolute path'
  const parts = path.replace(/\/$/, '').split('/')
  if (parts.some(part => Buffer.byteLength(part) > MOST_NAME)) return 'a name that is too long'
  if (parts.includes('')) return 'a path with an empty part'
  return parts.some(part => part === '..' || part === '.') ? 'a path with . or ..' : undefined
}

/** A path as an error shows it: short, and nothing in it moves the cursor or hides. */
export const quoted = (path: string): string =>
  JSON.stringify(path.slice(0, SHOWN)).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, one => `\\u{${one.codePointAt(0)!.toString(16)}}`)

const SHOWN = 120

export const strayMode = ({ isSpecial }: ArchiveEntry): string | undefined =>
  isSpecial ? 'a set-user-id, set-group-id or sticky bit' : undefined

/** Notes the paths of an archive, and says of each why it would overwrite another one somewhere: names that differ in case or Unicode form alone are one file on some systems. */
export function clashes(): (path: string) => string | undefined {
  const files = new Set<string>()
  const folders = new Set<string>()
  return path => {
    const name = path.normalize('NFC').toLowerCase()
    const above = [...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index))
    if (files.has(name)) return 'a file twice, or two whose names differ in case or Unicode form alone'
    if (folders.has(name) || above.some(folder => files.has(folder))) return 'a file and a folder of one name'
    files.add(name)
    for (const folder of above) folders.add(folder)
    return undefined
  }
}
