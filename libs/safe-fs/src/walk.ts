import type { Dirent } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { relative } from 'node:path'
import { createYielder, type Yielder } from '@svc/core'
import type { Ignore } from 'ignore'
import { type Folder, openFileIn, openFolder, openFolderIn } from './files.ts'
import { type ResolvedPath, type Roots, isInside } from './roots.ts'

/** An entry that a walk visits. */
export interface Visit {
  /** The open folder that contains it. It stays open until the next step of the walk. */
  readonly folder: Folder
  readonly name: string
  /** Relative to the start of the walk. */
  readonly path: string
  /** The displayed path. */
  readonly shown: string
  readonly type: 'file' | 'directory' | 'link' | 'other'
}

/** Limits of a walk. */
export interface WalkLimits {
  readonly signal: AbortSignal
  /** Whether to include ignored files. */
  readonly ignored: boolean
  /** Maximum number of entries. */
  readonly entries: number
}

/** Counters of a walk. Read them after the walk. */
export interface WalkStats {
  entries: number
  /** Whether the walk reached the limit of entries or depth. */
  cut: boolean
  /** Number of unreadable folders. */
  unreadable: number
}

const DEEPEST = 64

interface Way {
  /** The closed folder, relative to the root. */
  readonly closed: string
  readonly limits: WalkLimits
  readonly tally: WalkStats
  readonly yielder: Yielder
}
interface Step {
  readonly folder: Folder
  /** Relative to the start. */
  readonly path: string
  /** Relative to the root. */
  readonly inner: string
  readonly shown: string
  readonly rules: readonly Rules[]
  readonly depth: number
}

export const newWalkStats = (): WalkStats => ({ entries: 0, cut: false, unreadable: 0 })

/** Walks a directory recursively in the order of names, each folder before its contents. Reports links without following them, and skips `.git`. */
export async function* walk(
  roots: Roots,
  start: ResolvedPath,
  limits: WalkLimits,
  tally: WalkStats
): AsyncGenerator<Visit, void> {
  const root = roots.all.filter(item => isInside(item.real, start.real)).sort((a, b) => b.real.length - a.real.length)[0]!
  const inner = relative(root.real, start.real)
  const rules = limits.ignored ? [] : await rulesAbove(roots, root.real, inner)
  await using folder = await openFolder(roots, start)
  const shown = start.shown === '.' ? '' : start.shown
  const way = { limits, tally, closed: relative(root.real, roots.closed), yielder: createYielder(limits.signal) }
  yield* below({ folder, path: '', inner, shown, rules, depth: 0 }, way)
}

async function* below(step: Step, way: Way): AsyncGenerator<Visit, void> {
  const found = await entriesOf(step.folder, way)
  const own = way.limits.ignored ? undefined : await readRules(step.folder, new Set(found.map(entry => entry.name)), step.inner)
  const rules = own ? [...step.rules, own] : step.rules
  for (const entry of found) {
    way.limits.signal.throwIfAborted()
    if (way.yielder.isDue()) await way.yielder.take()
    const { name } = entry
    const type = typeOf(entry)
    const inner = joined(step.inner, name)
    if (name === '.git' || inner === way.closed || isIgnored(rules, inner, type === 'directory')) continue
    const visit = { folder: step.folder, name, path: joined(step.path, name), shown: joined(step.shown, name), type }
    yield visit
    if (type === 'directory') yield* into({ ...step, ...visit, inner, rules, depth: step.depth + 1 }, way)
  }
}

/** Walks the folder `name` of a step, unless it was removed. */
async function* into(step: Step & { readonly name: string }, way: Way): AsyncGenerator<Visit, void> {
  if (step.depth > DEEPEST) {
    way.tally.cut = true
    return
  }
  const opened = await openFolderIn(step.folder, step.name, step.shown).catch(() => undefined)
  if (!opened) {
    way.tally.unreadable++
    return
  }
  await using folder = opened
  yield* below({ ...step, folder }, way)
}

async function entriesOf(folder: Folder, { limits, tally, yielder }: Way): Promise<Dirent[]> {
  const found: Dirent[] = []
  // not readdir, because a directory can have millions of entries
  for await (const entry of await opendir(folder.at('.'))) {
    limits.signal.throwIfAborted()
    if (yielder.isDue()) await yielder.take()
    if (tally.entries >= limits.entries) {
      tally.cut = true
      break
    }
    tally.entries++
    found.push(entry)
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The rules of ignore files above the start of a walk. */
async function rulesAbove(roots: Roots, root: string, inner: string): Promise<Rules[]> {
  const rules: Rules[] = []
  const parts = inner === '' ? [] : inner.split('/')
  for (let depth = 0; depth < parts.length; depth++) {
    const path = parts.slice(0, depth).join('/')
    await using folder = await openFolder(roots, { real: joined(root, path), shown: path || '.' })
    const own = await readRules(folder, new Set(['.gitignore', '.ignore']), path)
    if (own) rules.push(own)
  }
  return rules
}

const joined = (folder: string, name: string) =>
  folder === '' || name === '' ? folder + name : `${folder.replace(/\/$/, '')}/${name}`

function typeOf(entry: Dirent): Visit['type'] {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'directory'
  return entry.isSymbolicLink() ? 'link' : 'other'
}

/** The rules of an ignore file, for paths below its folder. */
interface Rules {
  /** The folder relative to the root; empty for the root. */
  readonly folder: string
  readonly rules: Ignore
}

/** Ignore files; later ones take precedence. */
const FILES = ['.gitignore', '.ignore']
const LARGEST = 32_768
/** Maximum number of wildcards in a path segment, and of lines with this number. More would make matching slow. */
const WILD = 3
const WILD_LINES = 16

/** Reads the ignore files of a folder; `path` is the folder relative to the root. */
async function readRules(folder: Folder, names: ReadonlySet<string>, path: string): Promise<Rules | undefined> {
  const texts: string[] = []
  for (const name of FILES) if (names.has(name)) texts.push(await textOf(folder, name))
  const lines = tame(texts.join('\n').split(/\r?\n/))
  if (lines.length === 0) return undefined
  const { default: ignore } = await import('ignore')
  return { folder: path, rules: ignore({ ignorecase: false }).add(lines) }
}

/** Whether a path relative to the root is ignored. The deepest folder with a matching rule decides. */
function isIgnored(rules: readonly Rules[], path: string, isFolder: boolean): boolean {
  for (const { folder, rules: own } of rules.toReversed()) {
    const inner = folder === '' ? path : path.slice(folder.length + 1)
    const { ignored, unignored } = own.test(isFolder ? `${inner}/` : inner)
    if (ignored || unignored) return ignored
  }
  return false
}

async function textOf(folder: Folder, name: string): Promise<string> {
  try {
    await using opened = await openFileIn(folder, name, name)
    const { buffer, bytesRead } = await opened.handle.read(Buffer.alloc(LARGEST), 0, LARGEST, 0)
    return buffer.toString('utf8', 0, bytesRead)
  } catch {
    // links, devices and unreadable files contain no rules
    return ''
  }
}

/** Drops lines that make matching slow, because the library uses backtracking. */
function tame(lines: readonly string[]): string[] {
  let wild = 0
  return lines.filter(line => {
    if (line.trim() === '' || line.startsWith('#')) return false
    const most = Math.max(...line.split('/').map(part => part.split(/\*+/).length - 1))
    const folders = line.split('**').length - 1
    if (most > WILD || folders > WILD || line.length > 1024) return false
    return most < WILD || ++wild <= WILD_LINES
  })
}
