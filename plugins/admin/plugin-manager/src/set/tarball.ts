import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { ReadEntry } from 'tar'
import { archiveWords, tarballUnsafe } from './errors.ts'

/** Bytes, unpacked, and files: no plugin is that big; what is would fill the disk. */
const [MOST_BYTES, MOST_FILES] = [1024 ** 3, 100_000]
const MOST_JSON = 1024 ** 2

/** What a tarball holds, looked at without unpacking it anywhere. */
export interface Tarball {
  /** `sha512-…` */
  readonly integrity: string
  /** The text of its package.json; undefined where it has none. */
  readonly packageJson: string | undefined
  /** Own files: path → SHA-256. */
  readonly contents: ReadonlyMap<string, string>
  /** Of its own files, unpacked. */
  readonly bytes: number
}

/** Looks into a tarball; `label` is what a person called it. Throws PLUGIN_TARBALL_UNSAFE. */
export async function readTarball(file: string, label: string, signal?: AbortSignal): Promise<Tarball> {
  const faults: string[] = []
  const { contents, hashes, json, take } = gatherEntries(faults)
  try {
    await readArchive(file, { signal, most: MOST_BYTES, onEntry: take })
  } catch (error) {
    signal?.throwIfAborted()
    throw tarballUnsafe(label, `cannot be read: ${archiveWords(error)}`, error)
  }
  if (faults.length > 0) throw tarballUnsafe(label, `has ${faults[0]}`)
  const sorted = [...hashes].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    integrity: `sha512-${createHash('sha512')
      .update(await readFile(file))
      .digest('base64')}`,
    packageJson: json.length === 0 ? undefined : Buffer.concat(json).toString(),
    contents: new Map(
      sorted.filter(([path]) => !path.startsWith('node_modules/')).map(([path, hash]) => [path, hash.digest('hex')])
    ),
    bytes: contents.bytes,
  }
}

/** Path → SHA-256 of each own file in a tarball. */
export const contentsIn = async (file: string): Promise<ReadonlyMap<string, string>> => (await readTarball(file, '')).contents

function gatherEntries(faults: string[]) {
  const hashes = new Map<string, ReturnType<typeof createHash>>()
  const json: Uint8Array[] = []
  const contents = { bytes: 0 }
  const clash = clashes()
  let top: string | undefined
  let entries = 0
  function take(entry: ArchiveEntry) {
    const [first = '', ...rest] = entry.path.split('/')
    const path = rest.join('/')
    top ??= first
    const fault =
      strayPath(entry.path) ??
      strayMode(entry) ??
      strayKind(entry, path) ??
      (top === first ? undefined : 'files in more than one folder')
    if (++entries > MOST_FILES) throw new Error(`it has more than ${MOST_FILES} files and folders`)
    const found = fault ?? (isFile(entry) ? clash(path) : undefined)
    if (found !== undefined) faults.push(`${found} (${quoted(entry.path)})`)
    if (found !== undefined || !isFile(entry)) return undefined
    const hash = createHash('sha256')
    hashes.set(path, hash)
    contents.bytes += entry.size
    if (contents.bytes > MOST_BYTES) throw tooBig(MOST_BYTES)
    const isJson = path === 'package.json' && entry.size <= MOST_JSON
    return (chunk: Uint8Array) => {
      hash.update(chunk)
      if (isJson) json.push(Uint8Array.from(chunk))
    }
  }
  return { contents, hashes, json, take }
}

/** npm omits links silently, and the plugin would then lack files. */
function strayKind(entry: ArchiveEntry, path: string): string | undefined {
  if (isFile(entry)) return path === '' ? 'a file outside its folder' : undefined
  if (entry.type === 'Directory' || entry.type === 'GNUDumpDir') return undefined
  return entry.type.endsWith('Link') ? 'a link' : `a ${entry.type}`
}

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

const tooBig = (most: number): Error => new Error(`it holds more than ${most} bytes`)

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
function clashes(): (path: string) => string | undefined {
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
