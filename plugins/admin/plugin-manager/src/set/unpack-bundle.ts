import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { type ArchiveEntry, isFile, quoted, readArchive, strayMode, strayPath } from './archive.ts'
import { type Bundle, bundleIn, MANIFEST, SET, staysInside } from './bundle.ts'
import { archiveWords, bundleInvalid } from './errors.ts'
import { filesBelow } from './files.ts'
import { bundledFile } from './pack-set.ts'

/** Bytes, unpacked: more is no set of plugins. */
const MOST_BYTES = 8 * 1024 ** 3
const MOST_MANIFEST = 256 * 1024 ** 2

/** Unpacks a bundle into a folder that is not there yet, once all its names are known to be good; then checks each file. Throws BUNDLE_INVALID. */
export async function unpackBundle(file: string, set: string, signal?: AbortSignal): Promise<Bundle> {
  if (!existsSync(file)) throw bundleInvalid('there is no such file')
  const { bundle, entries } = await lookThrough(file, signal)
  checkEntries(bundle, entries)
  await mkdir(set, { recursive: true, mode: 0o700 })
  const { extract } = await import('tar')
  await readable(
    () =>
      extract({
        file,
        cwd: set,
        strip: 1,
        strict: true,
        preserveOwner: false,
        noMtime: true,
        filter: path => path.startsWith(`${SET}/`),
      }),
    signal
  )
  checkFiles(bundle, set)
  return bundle
}

async function readable<T>(read: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  try {
    return await read()
  } catch (error) {
    signal?.throwIfAborted()
    throw bundleInvalid(archiveWords(error), error)
  }
}

async function lookThrough(file: string, signal: AbortSignal | undefined) {
  const entries = new Map<string, ArchiveEntry>()
  const manifest: Uint8Array[] = []
  const faults: string[] = []
  const onEntry = (entry: ArchiveEntry) => {
    const { path } = entry
    const fault = strayPath(path) ?? strayMode(entry) ?? (entries.has(path) ? 'a path twice' : undefined)
    if (fault !== undefined) faults.push(`${fault} (${quoted(path)})`)
    entries.set(path, entry)
    const isManifest = path === MANIFEST && entry.size <= MOST_MANIFEST
    return isManifest ? (chunk: Uint8Array) => void manifest.push(Uint8Array.from(chunk)) : undefined
  }
  await readable(() => readArchive(file, { signal, most: MOST_BYTES, onEntry }), signal)
  if (faults.length > 0) throw bundleInvalid(`it has ${faults[0]}`)
  if (!isManifestFirst(entries)) throw bundleInvalid(`it does not begin with ${MANIFEST}`)
  return { bundle: bundleIn(Buffer.concat(manifest).toString()), entries }
}

function isManifestFirst(entries: ReadonlyMap<string, ArchiveEntry>): boolean {
  const [first] = entries.values()
  return first !== undefined && first.path === MANIFEST && isFile(first)
}

/** Exactly what the manifest names, and no way out of the set: neither by a link nor through one. */
function checkEntries({ files }: Bundle, entries: ReadonlyMap<string, ArchiveEntry>): void {
  const known = new Map(Object.entries(files).map(([path, one]) => [`${SET}/${path}`, one]))
  if (entries.size !== known.size + 1) throw bundleInvalid('it holds other files than it names')
  for (const [path, one] of known) {
    const entry = entries.get(path)
    if (entry === undefined) throw bundleInvalid(`${path} is missing`)
    const isLink = 'link' in one
    if (isLink ? entry.type !== 'SymbolicLink' || entry.target !== one.link : !isFile(entry))
      throw bundleInvalid(`${path} is not what it names`)
    if (isLink && !staysInside(path, one.link)) throw bundleInvalid(`${path} leads out of it`)
  }
}

function checkFiles({ files }: Bundle, set: string): void {
  const found = filesBelow(set)
  const other = found.find(one => JSON.stringify(bundledFile(set, one)) !== JSON.stringify(files[one.path]))
  if (other) throw bundleInvalid(`${other.path} is not what was packed`)
  if (found.length !== Object.keys(files).length) throw bundleInvalid('files are missing')
}
