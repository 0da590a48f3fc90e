import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { RUNS_SOURCES } from '@svc/cli/program'
import { copyTree } from './copy.ts'
import { type BuildPackage, rootOf } from './packages.ts'

const run = promisify(execFile)
const ASIDE = new Set(['node_modules', 'dist', 'test'])

/** Packages of a repository as they would be published: bundled in a folder of their own, so that the repository stays as it is. Where svc runs from bundles these are it. */
export async function bundled(packages: readonly BuildPackage[], work: string, signal: AbortSignal): Promise<BuildPackage[]> {
  const own = packages.filter(one => one.files !== undefined)
  if (!RUNS_SOURCES || own.length === 0) return [...packages]
  await mkdir(work, { recursive: true })
  await Promise.all(own.map(one => copyTree(one.folder, join(work, shortOf(one)), () => true, ASIDE)))
  await run(process.execPath, [join(rootOf(), 'scripts', 'bundle.ts'), ...own.map(shortOf)], { cwd: work, signal })
  return packages.map(one => (one.files === undefined ? one : { ...one, folder: join(work, shortOf(one)) }))
}

const shortOf = ({ name }: BuildPackage) => name.replace(/^@[^/]*\//, '')
