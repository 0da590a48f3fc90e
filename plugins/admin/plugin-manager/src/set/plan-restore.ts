import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hashSet, linkHost } from './build-set.ts'
import { type Bundle, bundleIn, MANIFEST, SET, staysInside } from './bundle.ts'
import type { PluginCandidate, SetOptions, StagedChange } from './change-types.ts'
import { archiveWords, bundleInvalid } from './errors.ts'
import { candidateOf } from './fetch.ts'
import { holdSet } from './hold.ts'
import { readNpmLock } from './lock-graph.ts'
import { type Lock, type LockedPlugin, needsSet, settledLock, tarballName } from './lock.ts'
import { bundledFile } from './pack-set.ts'
import { readPluginPackage } from './package-json.ts'
import { createStagedChange, createStaging, type NewSet, type Staging, sweep } from './staging.ts'
import { type ArchiveEntry, isFile, quoted, readArchive, readTarball, strayMode, strayPath } from './tarball.ts'
import { filesBelow } from './verify.ts'

interface RestoreOptions extends Pick<SetOptions, 'signal' | 'onProgress'> {
  /** Linked folders of this machine stay, unless the bundle has a plugin of their name. */
  readonly keepsLinks?: boolean
}

/**
 * Plans to replace all installed plugins with those of a bundle, without npm and network. Checks every hash; the candidates are
 * the bundle's plugins. Shows its choices (isolation, trusted, permissions) for consent as an install does. Throws
 * BUNDLE_INVALID, PLUGIN_SET_BUSY, LOCK_INVALID.
 */
export async function planRestore(
  home: string,
  file: string,
  { keepsLinks = false, ...options }: RestoreOptions = {}
): Promise<StagedChange> {
  await using undo = new AsyncDisposableStack()
  const hold = undo.use(await holdSet(home, 'restoring a bundle'))
  const before = await settledLock(home)
  await sweep(home, before)
  const staging = createStaging(home)
  undo.defer(() => staging.remove(false))
  options.onProgress?.({ step: 'unpack' })
  const bundle = await unpackBundle(file, staging.set, options.signal)
  options.onProgress?.({ step: 'hash' })
  const dependencies = await checkHashes(staging.set, bundle)
  const candidates = await candidatesOf(bundle, staging, before, options.signal)
  undo.move()
  const names = new Set(candidates.map(candidate => candidate.name))
  const others = before.plugins.filter(plugin => !names.has(plugin.name))
  const kept = keepsLinks ? others.filter(plugin => !needsSet(plugin)) : []
  return createStagedChange({
    home,
    before,
    candidates,
    removed: others.filter(plugin => !kept.includes(plugin)),
    isEmpty: false,
    staging,
    hold,
    make: async () => ({ ...(await settle(staging, bundle, dependencies)), kept }),
    notify: step => options.onProgress?.({ step }),
  })
}

/** The files match the bundle's manifest; this checks that they match its lock. */
async function checkHashes(set: string, { plugins, dependencies }: Bundle): Promise<Lock['dependencies']> {
  const names = plugins.map(plugin => plugin.name)
  const now = await hashSet(set, names)
  const other = plugins.find(plugin => plugin.files === '' || now.own.get(plugin.name) !== plugin.files)
  if (other) throw bundleInvalid(`the files of ${other.name} differ from the installed ones`)
  if (now.dependencies.files !== dependencies) throw bundleInvalid('the dependencies differ from the installed ones')
  return now.dependencies
}

async function candidatesOf(
  { plugins }: Bundle,
  { set, work }: Staging,
  before: Lock,
  signal: AbortSignal | undefined
): Promise<PluginCandidate[]> {
  const npmLock = await readNpmLock(set)
  const candidates: PluginCandidate[] = []
  for (const plugin of plugins) {
    const fetched = await lookAt(plugin, set, work, signal)
    candidates.push({ ...candidateOf(fetched, before, npmLock), permissions: plugin.permissions })
  }
  return candidates
}

async function lookAt(plugin: LockedPlugin, set: string, work: string, signal: AbortSignal | undefined) {
  const { name, version, origin, scripts } = plugin
  const tarball = join(set, 'tarballs', tarballName(name, version))
  const { integrity, bytes, contents } = await readTarball(tarball, name, signal)
  if (integrity !== plugin.integrity) throw bundleInvalid(`the tarball of ${name} differs from the installed one`)
  const text = await readFile(join(set, 'node_modules', name, 'package.json'), 'utf8')
  const found = await readPluginPackage(text, name, work, contents.has('binding.gyp'))
  if (found.name !== name || found.version !== version) throw bundleInvalid(`${name} is another plugin`)
  return { ...found, origin, scripts, tarball, integrity, bytes }
}

async function settle(staging: Staging, { plugins }: Bundle, dependencies: Lock['dependencies']): Promise<Omit<NewSet, 'kept'>> {
  await linkHost(staging.set)
  return { folder: await staging.settle(), set: staging.id, plugins, dependencies }
}

/** Limit of the unpacked size in bytes. */
const MOST_BYTES = 8 * 1024 ** 3
const MOST_MANIFEST = 256 * 1024 ** 2

/** Unpacks a bundle into a new folder after a check of all names, then checks each file. Throws BUNDLE_INVALID. */
async function unpackBundle(file: string, set: string, signal?: AbortSignal): Promise<Bundle> {
  if (!existsSync(file)) throw bundleInvalid('the file does not exist')
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
  const problems: string[] = []
  const onEntry = (entry: ArchiveEntry) => {
    const { path } = entry
    const problem = strayPath(path) ?? strayMode(entry) ?? (entries.has(path) ? 'a path twice' : undefined)
    if (problem !== undefined) problems.push(`${problem} (${quoted(path)})`)
    entries.set(path, entry)
    const isManifest = path === MANIFEST && entry.size <= MOST_MANIFEST
    return isManifest ? (chunk: Uint8Array) => void manifest.push(Uint8Array.from(chunk)) : undefined
  }
  await readable(() => readArchive(file, { signal, most: MOST_BYTES, onEntry }), signal)
  if (problems.length > 0) throw bundleInvalid(`it has ${problems[0]}`)
  if (!isManifestFirst(entries)) throw bundleInvalid(`it does not begin with ${MANIFEST}`)
  return { bundle: bundleIn(Buffer.concat(manifest).toString()), entries }
}

function isManifestFirst(entries: ReadonlyMap<string, ArchiveEntry>): boolean {
  const [first] = entries.values()
  return first !== undefined && first.path === MANIFEST && isFile(first)
}

/** Accepts only the entries that the manifest names, and no path or link out of the set. */
function checkEntries({ files }: Bundle, entries: ReadonlyMap<string, ArchiveEntry>): void {
  const known = new Map(Object.entries(files).map(([path, file]) => [`${SET}/${path}`, file]))
  if (entries.size !== known.size + 1) throw bundleInvalid('it contains other files than it names')
  for (const [path, item] of known) {
    const entry = entries.get(path)
    if (entry === undefined) throw bundleInvalid(`${path} is missing`)
    const isLink = 'link' in item
    if (isLink ? entry.type !== 'SymbolicLink' || entry.target !== item.link : !isFile(entry))
      throw bundleInvalid(`${path} differs from its description`)
    if (isLink && !staysInside(path, item.link)) throw bundleInvalid(`${path} leaves the bundle`)
  }
}

function checkFiles({ files }: Bundle, set: string): void {
  const found = filesBelow(set)
  const other = found.find(file => JSON.stringify(bundledFile(set, file)) !== JSON.stringify(files[file.path]))
  if (other) throw bundleInvalid(`${other.path} differs from the packed file`)
  if (found.length !== Object.keys(files).length) throw bundleInvalid('files are missing')
}
