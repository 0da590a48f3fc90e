import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, resolve } from 'node:path'
import type { Roots } from '@svc/safe-fs'
import { leadsOut } from './errors.ts'

/** A path without links, where it lies within the roots. Throws GIT_OUTSIDE; `what` is the word for what leads out. */
export async function within(roots: Roots, path: string, what: string): Promise<string> {
  const real = await realpath(path).catch(() => '')
  if (!isAbsolute(real) || !roots.holds(real)) throw leadsOut(what)
  return real
}

/** Checks that nothing which git reads of a repository leads out of the roots: of one outside it would show what is in that. Throws GIT_OUTSIDE. */
export async function checkGitFolder(roots: Roots, folder: string): Promise<void> {
  await checkLinks(roots, folder, { what: 'git folder', recursive: false })
}

/** The same for its objects, and for those that it borrows, which may borrow in turn. */
export async function checkObjects(roots: Roots, objects: string, what = 'store of objects', stores = new Set<string>()) {
  const real = await within(roots, objects, what)
  if (stores.has(real)) return
  stores.add(real)
  await checkLinks(roots, real, { what, recursive: true })
  for (const line of (await borrowed(real)).split('\n'))
    if (line !== '' && !line.startsWith('#')) await checkObjects(roots, resolve(real, line), 'borrowed store of objects', stores)
}

interface How {
  readonly what: string
  readonly recursive: boolean
}

/** A folder that a link leads to may have links of its own. */
async function checkLinks(roots: Roots, folder: string, how: How, seen = new Set<string>()) {
  const real = await within(roots, folder, how.what)
  if (seen.has(real)) return
  seen.add(real)
  const entries = await readdir(real, { withFileTypes: true, recursive: how.recursive }).catch(() => undefined)
  if (entries === undefined) throw leadsOut(how.what)
  for (const entry of entries) {
    if (!entry.isSymbolicLink()) continue
    const path = join(entry.parentPath, entry.name)
    const target = await stat(path).catch(() => undefined)
    if (target?.isDirectory() && how.recursive) await checkLinks(roots, path, how, seen)
    // one that leads to nothing shows nothing: editors make such
    else if (target !== undefined) await within(roots, path, how.what)
  }
}

/** What a store of objects says of where more are. */
async function borrowed(objects: string): Promise<string> {
  const file = join(objects, 'info', 'alternates')
  const stats = await stat(file).catch(() => undefined)
  if (stats === undefined) return ''
  // to read a pipe would hold a thread of ours for ever
  if (!stats.isFile()) throw leadsOut('store of objects')
  return readFile(file, 'utf8').catch(() => Promise.reject(leadsOut('store of objects')))
}
