import { readFileSync } from 'node:fs'
import { copyFile, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, schema } from '@svc/core'
import { replaceFile } from '@svc/runtime/home-files'
import { removeEmpty } from './hold.ts'
import { type Lock, type LockedPlugin, NAME, needsSet, type Origin, setFolder, tarballName, VERSION } from './lock.ts'

// The versions that plugins had before their last change, with their tarballs: `<home>/plugins/former`.

/** A version of a plugin that another one has replaced. */
export interface FormerVersion {
  readonly name: string
  readonly version: string
  readonly origin: Origin
  /** `sha512-…` of its tarball. */
  readonly integrity: string
  readonly scripts: boolean
  /** The hash of the tarball that replaced it. A change that was not put in effect leaves a version that nothing has replaced. */
  readonly replacedBy: string
}

const text = { type: 'string' } as const
const hash = { type: 'string', pattern: '^sha512-[A-Za-z0-9+/]{86}==$' } as const
const formerSchema = schema<readonly FormerVersion[]>({
  type: 'array',
  items: {
    type: 'object',
    properties: {
      name: { type: 'string', pattern: NAME.source },
      version: { type: 'string', pattern: VERSION.source },
      origin: {
        type: 'object',
        properties: { kind: { enum: ['registry', 'folder', 'tarball'] }, spec: text },
        required: ['kind', 'spec'],
        additionalProperties: false,
      },
      integrity: hash,
      scripts: { type: 'boolean' },
      replacedBy: hash,
    },
    required: ['name', 'version', 'origin', 'integrity', 'scripts', 'replacedBy'],
    additionalProperties: false,
  },
})

const folderOf = (home: string) => join(home, 'plugins', 'former')
const INDEX = 'index.json'

/** The file of its tarball, by the hash of its bytes. */
export const formerTarball = (home: string, { integrity }: Pick<FormerVersion, 'integrity'>): string =>
  join(folderOf(home), `${Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex').slice(0, 40)}.tgz`)

/** The version that the installed one has replaced on this machine; undefined without one. Its tarball is not checked. */
export const formerVersionOf = (
  home: string,
  { name, integrity }: Pick<LockedPlugin, 'name' | 'integrity'>
): FormerVersion | undefined => readFormer(home).find(item => item.name === name && item.replacedBy === integrity)

/** A file that cannot be read names no versions: they only help to go back. */
function readFormer(home: string): readonly FormerVersion[] {
  try {
    const written: unknown = JSON.parse(readFileSync(join(folderOf(home), INDEX), 'utf8'))
    return formerSchema.check(written).length === 0 ? (written as readonly FormerVersion[]) : []
  } catch {
    return []
  }
}

/** Before a change is put in effect: keeps the tarballs of the versions that it replaces. */
export async function keepFormer(home: string, before: Lock, next: Lock): Promise<void> {
  const replaced = next.plugins.filter(needsSet).flatMap(plugin => replacedBy(plugin, before))
  if (replaced.length === 0) return
  await mkdir(folderOf(home), { recursive: true, mode: 0o700 })
  const added: FormerVersion[] = []
  for (const former of replaced) if (await copyTarball(home, before, former)) added.push(former)
  const others = readFormer(home).filter(item => !added.some(other => isSame(item, other)))
  await writeIndex(home, [...others, ...added])
}

/** After a change: removes the versions to which no installed plugin can go back. */
export async function sweepFormer(home: string, { plugins }: Lock): Promise<void> {
  const known = readFormer(home)
  const kept = known.filter(item => plugins.some(plugin => plugin.name === item.name && plugin.integrity === item.replacedBy))
  if (kept.length === 0) return removeFormer(home)
  if (kept.length < known.length) await writeIndex(home, kept)
  const files = new Set(kept.map(item => formerTarball(home, item)))
  for (const file of (await readdir(folderOf(home))).map(name => join(folderOf(home), name)))
    if (file.endsWith('.tgz') && !files.has(file)) await rm(file, { force: true })
}

async function removeFormer(home: string): Promise<void> {
  await rm(folderOf(home), { recursive: true, force: true })
  removeEmpty(join(home, 'plugins'))
}

const writeIndex = (home: string, versions: readonly FormerVersion[]): Promise<void> =>
  replaceFile(join(folderOf(home), INDEX), `${JSON.stringify(versions, null, 2)}\n`)

const isSame = (a: FormerVersion, b: FormerVersion) => a.name === b.name && a.replacedBy === b.replacedBy

function replacedBy({ name, integrity: hash }: LockedPlugin, before: Lock): FormerVersion[] {
  const old = before.plugins.find(plugin => plugin.name === name)
  if (old === undefined || !needsSet(old) || old.integrity === hash) return []
  const { version, origin, integrity, scripts } = old
  return [{ name, version, origin, integrity, scripts, replacedBy: hash }]
}

/** Returns false if the set has lost its tarball. */
async function copyTarball(home: string, before: Lock, former: FormerVersion): Promise<boolean> {
  try {
    const kept = join(setFolder(home, before) ?? '', 'tarballs', tarballName(former.name, former.version))
    await copyFile(kept, formerTarball(home, former))
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
}
