import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { ReadEntry } from 'tar'
import { archiveWords, tarballUnsafe } from './errors.ts'

/** Limits of unpacked bytes and files, which protect the disk. No plugin is that large. */
const [MOST_BYTES, MOST_FILES] = [1024 ** 3, 100_000]
const MOST_JSON = 1024 ** 2

/** The contents of a tarball, read without unpacking. */
export interface Tarball {
  /** `sha512-…` */
  readonly integrity: string
  /** The text of its package.json; undefined if it has none. */
  readonly packageJson: string | undefined
  /** Own files: path → SHA-256. */
  readonly contents: ReadonlyMap<string, string>
  /** Unpacked size of its own files. */
  readonly bytes: number
}

/** Inspects a tarball; `label` is the user's name for it. Throws PLUGIN_TARBALL_UNSAFE. */
export async function readTarball(file: string, label: string, signal?: AbortSignal): Promise<Tarball> {
  const problems: string[] = []
  const { contents, hashes, json, take } = gatherEntries(problems)
  try {
    await readArchive(file, { signal, most: MOST_BYTES, onEntry: take })
  } catch (error) {
    signal?.throwIfAborted()
    throw tarballUnsafe(label, `cannot be read: ${archiveWords(error)}`, error)
  }
  if (problems.length > 0) throw tarballUnsafe(label, `has ${problems[0]}`)
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

/** Hashes of the own files in a tarball: path → SHA-256. */
export const contentsIn = async (file: string): Promise<ReadonlyMap<string, string>> => (await readTarball(file, '')).contents

function gatherEntries(problems: string[]) {
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
    const problem =
      strayPath(entry.path) ??
      strayMode(entry) ??
      strayKind(entry, path) ??
      (top === first ? undefined : 'files in more than one folder')
    if (++entries > MOST_FILES) throw new Error(`it contains more than ${MOST_FILES} files and folders`)
    const found = problem ?? (isFile(entry) ? clash(path) : undefined)
    if (found !== undefined) problems.push(`${found} (${quoted(entry.path)})`)
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

/** An entry of an archive, unchecked: its path can lead anywhere. */
export interface ArchiveEntry {
  readonly path: string
  readonly type: ReadEntry['type']
  readonly size: number
  readonly isExecutable: boolean
  /** It has a set-user-id, set-group-id or sticky bit. */
  readonly isSpecial: boolean
  /** The target of a link; '' otherwise. */
  readonly target: string
}

export interface ReadArchive {
  readonly signal?: AbortSignal | undefined
  /** Limit of the unpacked size in bytes. */
  readonly most: number
  /** How to handle the content of an entry, whole or in pieces; undefined skips it. */
  readonly onEntry: (entry: ArchiveEntry) => ((chunk: Uint8Array) => void) | undefined
}

/**
 * Reads a .tgz from start to end and writes nothing. Throws if it is truncated, damaged or too large, and the errors of
 * `onEntry`.
 */
export async function readArchive(file: string, { signal, most, onEntry }: ReadArchive): Promise<void> {
  const { Parser } = await import('tar') // not at the start of a server, which only verifies installed plugins
  const problems: unknown[] = []
  const parser = new Parser({ strict: true, onReadEntry: entry => consume(entry, onEntry, problems) })
  parser.on('error', error => problems.push(error))
  // another reader may interpret it
  parser.on('ignoredEntry', ({ type }) => problems.push(new Error(`it has an entry of an unknown kind (${type})`)))
  const check = () => {
    if (problems.length > 0) throw problems[0]
  }
  async function parse(source: AsyncIterable<Buffer>) {
    let bytes = 0
    for await (const chunk of source) {
      // the parser would unpack an inner gzip without the limit
      if (bytes === 0 && isPacked(chunk)) throw new Error('it is compressed twice')
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

const tooBig = (most: number): Error => new Error(`it contains more than ${most} bytes`)

/** First bytes of gzip and zstd. */
const isPacked = (chunk: Buffer) => /^(1f8b|28b52ffd)/.test(chunk.subarray(0, 4).toString('hex'))

function consume(entry: ReadEntry, onEntry: ReadArchive['onEntry'], problems: unknown[]): void {
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
    problems.push(error)
  }
  entry.resume()
}

export const isFile = ({ type }: ArchiveEntry): boolean => type === 'File' || type === 'OldFile' || type === 'ContiguousFile'

/** Limits of file systems: bytes of a name, and of a path, with space for the target folder. */
const [MOST_NAME, MOST_PATH] = [255, 2048]

/** Why a path can leave the target folder, or mean another path to another reader; undefined for a safe path. */
export function strayPath(path: string): string | undefined {
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\\]/u.test(path)) return 'a backslash, control or hidden character in a path'
  // undecodable bytes: two names may look the same
  if (path.includes('\ufffd')) return 'a path that is not UTF-8'
  if (Buffer.byteLength(path) > MOST_PATH) return 'a path that is too long'
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'an absolute path'
  const parts = path.replace(/\/$/, '').split('/')
  if (parts.some(part => Buffer.byteLength(part) > MOST_NAME)) return 'a name that is too long'
  if (parts.includes('')) return 'a path with an empty part'
  return parts.some(part => part === '..' || part === '.') ? 'a path with . or ..' : undefined
}

/** A path in an error: shortened, with control characters escaped. */
export const quoted = (path: string): string =>
  JSON.stringify(path.slice(0, SHOWN)).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    item => `\\u{${item.codePointAt(0)!.toString(16)}}`
  )

const SHOWN = 120

export const strayMode = ({ isSpecial }: ArchiveEntry): string | undefined =>
  isSpecial ? 'a set-user-id, set-group-id or sticky bit' : undefined

/**
 * Records the paths of an archive and detects clashes: names that differ only in case or Unicode form are one file on some
 * systems.
 */
function clashes(): (path: string) => string | undefined {
  const files = new Set<string>()
  const folders = new Set<string>()
  return path => {
    const name = path.normalize('NFC').toLowerCase()
    const above = [...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index))
    if (files.has(name)) return 'a file twice, or two whose names differ only in case or Unicode form'
    if (folders.has(name) || above.some(folder => files.has(folder))) return 'a file and a folder of one name'
    files.add(name)
    for (const folder of above) folders.add(folder)
    return undefined
  }
}
