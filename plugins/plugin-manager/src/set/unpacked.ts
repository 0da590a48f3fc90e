import { join } from 'node:path'
import { changedFiles, unpackedOtherwise } from './errors.ts'
import { contentsOf, ownFiles } from './files.ts'
import type { LockedPlugin } from './lock-types.ts'
import { tarballName } from './names.ts'
import { readTarball } from './tarball.ts'

/** How many files are named. */
const NAMED = 5
/** npm gives the first of them the name of the second. */
const RENAMED = /(^|\/)\.(gitignore|npmignore)$/

type Unpacked = Pick<LockedPlugin, 'name' | 'version' | 'integrity'>

/**
 * Compares what npm has unpacked with what svc found in the same tarball before a person accepted it: npm reads archives with a parser of its own, and what it
 * understands in another way was not shown. Throws PLUGIN_TARBALL_UNSAFE, and PLUGIN_CHANGED where the tarball is another one by now.
 */
export async function checkUnpacked(set: string, { name, version, integrity }: Unpacked): Promise<void> {
  const tarball = await readTarball(join(set, 'tarballs', tarballName(name, version)), name)
  if (tarball.integrity !== integrity) throw changedFiles(name, ['its tarball'])
  const folder = join(set, 'node_modules', name)
  const found = contentsOf(folder, ownFiles(folder))
  const paths = new Set([...tarball.contents.keys(), ...found.keys()])
  const other = [...paths].filter(path => tarball.contents.get(path) !== found.get(path) && !RENAMED.test(path))
  if (other.length > 0) throw unpackedOtherwise(name, other.sort().slice(0, NAMED))
}
