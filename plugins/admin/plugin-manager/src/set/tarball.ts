import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type ArchiveEntry, clashes, isFile, quoted, readArchive, strayMode, strayPath, tooBig } from './archive.ts'
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
