import { createHash } from 'node:crypto'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Lock, type LockedPlugin, lockFile, readLock, setFolder, verifySet } from '../../set.ts'
import { StartFailed } from '@svc/core'
import { setHome } from '@svc/cli/program'
import { copyTree } from './copy.ts'
import { pluginLinked } from './errors.ts'

/** Copies what is installed and enabled, verified; returns it. */
export async function copyInstalled(to: string): Promise<readonly LockedPlugin[]> {
  const home = setHome()
  const lock = await readLock(home)
  const plugins = lock.plugins.filter(one => one.enabled)
  const link = plugins.find(one => one.origin.kind === 'link')
  if (link) throw pluginLinked(link.name)
  const set = setFolder(home, lock)
  if (set === undefined || plugins.length === 0) return []
  const problems = await verifySet(home, lock)
  if (problems.length > 0) throw new StartFailed(problems)
  const built = builtLock(lock)
  const folder = setFolder(to, built)!
  await copyTree(set, folder, path => path !== 'host/core')
  await mkdir(join(folder, 'host'), { recursive: true })
  // the core of the build, whatever machine it comes to lie on
  await symlink('../../../../node_modules/@svc/core', join(folder, 'host', 'core'))
  await writeFile(lockFile(to), `${JSON.stringify(built, null, 2)}\n`)
  return plugins
}

/** What is the same wherever and whenever it is built: no times, no path of this machine. */
function builtLock({ version, plugins, dependencies }: Lock): Lock {
  const plain = plugins.map(one => ({ ...one, origin: { ...one.origin, spec: plainSpec(one) } }))
  const id = createHash('sha256')
    .update(JSON.stringify([plain, dependencies.files]))
    .digest('hex')
    .slice(0, 8)
  return { version, set: `build-${id}`, plugins: plain, dependencies: { files: dependencies.files, stamp: '' } }
}

const plainSpec = ({ origin: { kind, spec } }: LockedPlugin) => (kind === 'registry' ? spec : basename(spec))
