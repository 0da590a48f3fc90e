import { randomUUID } from 'node:crypto'
import { lstatSync, readlinkSync } from 'node:fs'
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { type Bundle, type BundledFile, MANIFEST, SET, staysInside } from './bundle.ts'
import type { SetOptions } from './change-types.ts'
import { leadsOut, linked, setEmpty } from './errors.ts'
import { contentOf, type FileBelow, filesBelow, problemsOf } from './verify.ts'
import { holdSet } from './hold.ts'
import { type Lock, needsSet, setFolder, settledLock } from './lock.ts'
import { createStaging } from './staging.ts'

/** A fixed time: the same in every bundle. */
const WRITTEN = new Date('2000-01-01T00:00:00Z')

/**
 * Writes all installed plugins into one .tgz: lock, tarballs, node_modules, and a hash of each file. Two bundles of a set are
 * identical. Throws the errors of `verifySet`, PLUGIN_LINKED, PLUGIN_LEADS_OUT, PLUGIN_SET_EMPTY, PLUGIN_SET_BUSY,
 * LOCK_INVALID.
 */
export async function packSet(
  home: string,
  file: string,
  { signal, onProgress }: Pick<SetOptions, 'signal' | 'onProgress'> = {}
): Promise<void> {
  using _held = await holdSet(home, 'packing')
  const lock = await settledLock(home)
  const link = lock.plugins.find(plugin => !needsSet(plugin))
  if (link) throw linked(link.name)
  // each machine has its own configuration
  const plugins = lock.plugins.map(({ values: _accepted, ...plugin }) => plugin)
  await packLock(home, { ...lock, plugins }, file, { signal, onProgress })
}

/** Packs the set of a lock without links, for the holder of the plugins. Throws as `packSet`. */
export async function packLock(
  home: string,
  lock: Lock,
  file: string,
  { signal, onProgress }: Pick<SetOptions, 'signal' | 'onProgress'>
): Promise<void> {
  const set = await packable(home, lock)
  const files = filesBelow(set, path => path === 'host')
  const out = files.find(item => item.isLink && !staysInside(`${SET}/${item.path}`, readlinkSync(join(set, item.path))))
  if (out) throw leadsOut(out.path)
  onProgress?.({ step: 'hash' })
  const bundle = bundleOf(set, lock, files)
  const staging = createStaging(home)
  const part = `${file}.${randomUUID()}`
  try {
    await writeFile(join(staging.work, MANIFEST), `${JSON.stringify(bundle)}\n`)
    signal?.throwIfAborted()
    onProgress?.({ step: 'pack' })
    await mkdir(dirname(file), { recursive: true })
    await writeArchive(home, part, { set, manifest: join(staging.work, MANIFEST), files })
    signal?.throwIfAborted()
    await rename(part, file)
  } finally {
    await rm(part, { force: true })
    await staging.remove(false)
  }
}

/** The folder of a set that can be packed. */
async function packable(home: string, lock: Lock): Promise<string> {
  const set = setFolder(home, lock)
  if (set === undefined) throw setEmpty()
  const [problem] = await problemsOf(home, lock)
  if (problem) throw problem
  return set
}

const bundleOf = (set: string, { plugins, dependencies }: Lock, files: readonly FileBelow[]): Bundle => ({
  bundle: 1,
  plugins,
  dependencies: dependencies.files,
  files: Object.fromEntries(files.map(file => [file.path, bundledFile(set, file)])),
})

/** The facts of a file that must match on another machine: its bytes, and whether it is executable. */
export function bundledFile(set: string, fileBelow: FileBelow): BundledFile {
  if (fileBelow.isLink) return { link: readlinkSync(join(set, fileBelow.path)) }
  const isExecutable = (lstatSync(join(set, fileBelow.path)).mode & 0o100) !== 0
  return { sha256: contentOf(set, fileBelow), ...(isExecutable ? { executable: true } : {}) }
}

interface Contents {
  readonly set: string
  readonly manifest: string
  readonly files: readonly FileBelow[]
}

async function writeArchive(home: string, file: string, { set, manifest, files }: Contents): Promise<void> {
  const names = new Map([
    [relative(home, manifest), MANIFEST],
    ...files.map(({ path }) => [join(relative(home, set), path), `${SET}/${path}`] as const),
  ])
  const paths = [...names.keys()]
  const onWriteEntry = (entry: { path: string }) => {
    entry.path = names.get(entry.path) ?? entry.path
  }
  const how = { cwd: home, gzip: true, portable: true, noDirRecurse: true, strict: true, mtime: WRITTEN, onWriteEntry }
  const { create } = await import('tar')
  await create({ ...how, file }, paths)
  await using handle = await open(file, 'r')
  await handle.sync()
}
