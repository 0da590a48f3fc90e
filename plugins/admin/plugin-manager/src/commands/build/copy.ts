import { chmod, constants, copyFile, lutimes, mkdir, readdir, readlink, stat, symlink } from 'node:fs/promises'
import { dirname, join, matchesGlob } from 'node:path'

/** The same in every build: when a file was written is no part of it. */
const WRITTEN = new Date('2000-01-01T00:00:00Z')

/** Published whatever `files` says. */
const ALWAYS = /^(package\.json|readme(\..*)?|licen[cs]e(\..*)?)$/i

/** Whether a file of a package is published, by its path and the words of `files`. */
function isPublished(path: string, words: readonly string[]): boolean {
  if (ALWAYS.test(path)) return true
  const matches = (word: string) => matchesGlob(path, word) || matchesGlob(path, `${word}/**`)
  const out = words.filter(word => word.startsWith('!')).map(word => word.slice(1))
  return words.some(word => !word.startsWith('!') && matches(word)) && !out.some(matches)
}

/** What only a compiler reads. */
const TYPES = /\.d\.[cm]?ts(\.map)?$/

/** Copies a package without what it has installed itself. Of one that lies in a repository only what is published. */
export async function copyPackage(from: string, to: string, files: readonly string[] | undefined): Promise<void> {
  const takes = (path: string) => files === undefined || (isPublished(path, files) && !TYPES.test(path))
  await copyTree(from, to, takes, new Set(['node_modules']))
}

/** Copies files and links, as they are; nothing of the folders `aside`. */
export async function copyTree(
  from: string,
  to: string,
  takes: (path: string) => boolean = () => true,
  aside: ReadonlySet<string> = new Set()
): Promise<void> {
  const files = (await filesIn(from, '', aside)).filter(one => takes(one.path))
  for (const folder of new Set(files.map(one => dirname(join(to, one.path))))) await mkdir(folder, { recursive: true })
  const copy = ({ path, isLink }: FileFound) =>
    isLink ? copyLink(join(from, path), join(to, path)) : copyOne(join(from, path), join(to, path))
  await Promise.all(files.map(copy))
}

interface FileFound {
  readonly path: string
  readonly isLink: boolean
}

async function filesIn(root: string, folder: string, aside: ReadonlySet<string>): Promise<FileFound[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true })
  const found = await Promise.all(
    entries.map(async (one): Promise<FileFound[]> => {
      const path = folder === '' ? one.name : `${folder}/${one.name}`
      if (one.isDirectory()) return aside.has(path) ? [] : filesIn(root, path, aside)
      return [{ path, isLink: one.isSymbolicLink() }]
    })
  )
  return found.flat()
}

const copyLink = async (from: string, to: string) => symlink(await readlink(from), to)

/** Another user may run a build: all users may read it, and executables stay executable. */
export async function copyOne(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE)
  await chmod(to, ((await stat(from)).mode & 0o100) === 0 ? 0o644 : 0o755)
}

/** Gives a folder and all that is in it the same times, and the folders the same rights. */
export async function level(folder: string): Promise<void> {
  for (const one of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, one.name)
    await (one.isDirectory() ? level(path) : lutimes(path, WRITTEN, WRITTEN))
  }
  await chmod(folder, 0o755)
  await lutimes(folder, WRITTEN, WRITTEN)
}
