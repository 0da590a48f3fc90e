import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { extract } from 'tar'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

interface Needs {
  readonly name: string
  readonly version: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}
/** Path below the repository → what package-lock.json knows of the package there. */
type Locked = Readonly<Record<string, Partial<Needs> & { readonly resolved?: string; readonly link?: boolean }>>

/**
 * Lays tarballs of this repository out in the `node_modules` of a folder, and beside them the packages that they say they need, and those that these need, as
 * package-lock.json has them: no others. Throws where a tarball needs what neither has, or another version of one of its kin.
 */
export async function layOut(tarballs: readonly string[], folder: string): Promise<void> {
  const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as { packages: Locked }
  const places = new Map(Object.entries(packages).flatMap(([path, { link, resolved }]) => (link ? [[path, resolved!]] : [])))
  const ours = await Promise.all(tarballs.map(file => unpack(file, folder)))
  const needed = new Set<string>()
  const need = (from: string, { dependencies = {}, optionalDependencies = {} }: Partial<Needs>) => {
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const kin = ours.find(our => our.name === name)
      const path = pathOf(packages, from, name)
      if (kin) checkKin(from, kin, dependencies[name])
      else if (path !== undefined && !needed.has(path)) {
        if (name in optionalDependencies && !existsSync(join(ROOT, path))) continue // for another platform: npm left it out
        needed.add(path)
        need(path, packages[path]!)
      } else if (path === undefined && !(name in optionalDependencies))
        throw new Error(`${from} needs ${name}, which is not there`)
    }
  }
  await writeOrigins(folder, tarballs, ours)
  for (const our of ours) need(places.get(`node_modules/${our.name}`)!, our)
  for (const [into, paths] of Map.groupBy(needed, path => join(folder, dirname(placeIn(path, places))))) {
    await mkdir(into, { recursive: true })
    await run('cp', ['-R', ...paths, into], { cwd: ROOT })
  }
}

/** Where the packages come from, as npm notes it beside them. */
async function writeOrigins(folder: string, tarballs: readonly string[], ours: readonly Needs[]): Promise<void> {
  const noted = ours.map(({ name, version }, at) => [
    `node_modules/${name}`,
    { version, resolved: `file:${relative(folder, tarballs[at]!)}` },
  ])
  await writeFile(join(folder, 'node_modules/.package-lock.json'), JSON.stringify({ packages: Object.fromEntries(noted) }))
}

/** What its package.json says, once it lies in its place. */
async function unpack(file: string, folder: string): Promise<Needs> {
  const work = await mkdtemp(join(folder, 'unpacked-'))
  await extract({ file, cwd: work })
  const pkg = JSON.parse(await readFile(join(work, 'package/package.json'), 'utf8')) as Needs
  const place = join(folder, 'node_modules', pkg.name)
  await mkdir(dirname(place), { recursive: true })
  await rename(join(work, 'package'), place)
  return pkg
}

function checkKin(from: string, { name, version }: Needs, wanted: string | undefined): void {
  if (wanted !== version) throw new Error(`${from} needs ${name} ${wanted}, and ${version} is packed`)
}

/** Where a package is found from another one, as Node looks: in its own `node_modules`, then in those above. */
function pathOf(packages: Locked, from: string, name: string): string | undefined {
  const path = from === '' ? `node_modules/${name}` : `${from}/node_modules/${name}`
  if (path in packages || from === '') return path in packages ? path : undefined
  return pathOf(packages, from.includes('/') ? dirname(from) : '', name)
}

/** Where it lies in the folder: what one of ours alone has is below that one. */
function placeIn(path: string, places: ReadonlyMap<string, string>): string {
  const [at] = [...places].find(([, own]) => path.startsWith(`${own}/`)) ?? []
  return at === undefined ? path : path.replace(places.get(at)!, at)
}
