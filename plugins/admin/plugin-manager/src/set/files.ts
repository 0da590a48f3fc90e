import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf } from '@svc/core'

/** A file or link below a folder; `path` from there, with `/`. */
export interface FileBelow {
  readonly path: string
  readonly isLink: boolean
  /** A pipe, a socket, a device: who reads it may wait for ever. */
  readonly isOdd: boolean
}

type Skip = (path: string) => boolean

/** All files and links below a folder, always in one order; `skip` leaves out a path with all below it. None where there is no such folder. */
export function filesBelow(root: string, skip: Skip = () => false): FileBelow[] {
  const found: FileBelow[] = []
  walk(root, '', skip, found)
  return found
}

// a start waits for it: one list for all, sorted a folder at a time, is half the work
function walk(root: string, prefix: string, skip: Skip, found: FileBelow[]): void {
  for (const one of entriesOf(root + prefix)) {
    const path = prefix.slice(1) + (prefix === '' ? '' : '/') + one.name
    if (skip(path)) continue
    if (one.isDirectory()) walk(root, `/${path}`, skip, found)
    else found.push({ path, isLink: one.isSymbolicLink(), isOdd: !one.isFile() && !one.isSymbolicLink() })
  }
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => inOrder(a.name, b.name))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** The core of this svc lies outside the set; only a link leads there. */
const isHostCore = (path: string) => path === '@svc/core'

/** What lies in node_modules that belongs to no plugin's own files. */
export function dependencyFiles(modules: string, plugins: readonly string[]): FileBelow[] {
  const own = new Set(plugins)
  const shared = filesBelow(modules, path => own.has(path) || isHostCore(path))
  const nested = [...plugins].sort(inOrder).flatMap(name => {
    const folder = `${name}/node_modules`
    return filesBelow(`${modules}/${folder}`).map(one => ({ ...one, path: `${folder}/${one.path}` }))
  })
  return [...shared, ...nested]
}

const inOrder = (a: string, b: string) => (a < b ? -1 : 1)

/** A package's own files: its dependencies are not among them. */
export const ownFiles = (folder: string): FileBelow[] => filesBelow(folder, path => path === 'node_modules')

const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')

/** What a file holds, as a hash; of a link, where it leads; of what is neither, nothing. */
export function contentOf(root: string, { path, isLink, isOdd }: FileBelow): string {
  if (isOdd) return 'no file'
  return isLink ? `link ${readlinkSync(join(root, path))}` : sha256(readFileSync(join(root, path)))
}

/** Path → hash, in the order of the files. */
export const contentsOf = (root: string, files: readonly FileBelow[]): Map<string, string> =>
  new Map(files.map(file => [file.path, contentOf(root, file)]))

/** One hash over all of them; '' for none. */
export const hashOf = (contents: ReadonlyMap<string, string>): string =>
  contents.size === 0 ? '' : sha256([...contents].map(([path, content]) => `${path}\0${content}\n`).join(''))

/** A hash that changes with every write to any of the files, at a fraction of the cost of reading them. The time of change (ctime) is in it, which no program can set back. */
export function stampOf(root: string, files: readonly FileBelow[]): string {
  if (files.length === 0) return ''
  return sha256(files.map(file => stampLine(root, file)).join(''))
}

function stampLine(root: string, { path }: FileBelow): string {
  const { size, mtimeMs, ctimeMs } = lstatSync(`${root}/${path}`)
  return `${path}\0${size}\0${mtimeMs}\0${ctimeMs}\n`
}
