import type { Dirent } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { relative } from 'node:path'
import { createYielder, type Yielder } from '@svc/core'
import type { Ignore } from 'ignore'
import { type Folder, openFileIn, openFolder, openFolderIn } from './files.ts'
import { type Place, type Roots, isInside } from './roots.ts'

/** One thing that a walk comes by. */
export interface Visit {
  /** The open folder it lies in: open until the next step of the walk. */
  readonly folder: Folder
  readonly name: string
  /** Seen from the start of the walk. */
  readonly path: string
  /** As it is told. */
  readonly shown: string
  readonly type: 'file' | 'directory' | 'link' | 'other'
}

/** How far a walk may go. */
export interface WalkLimits {
  readonly signal: AbortSignal
  /** Also what ignore files leave out. */
  readonly ignored: boolean
  /** The most things it comes by. */
  readonly entries: number
}

/** What came of a walk; read it when the walk is over. */
export interface WalkTally {
  entries: number
  /** More than the limit of entries, or folders deeper than a walk goes. */
  cut: boolean
  /** Folders that could not be opened. */
  unreadable: number
}

const DEEPEST = 64

interface Way {
  /** The closed folder, from the root. */
  readonly closed: string
  readonly limits: WalkLimits
  readonly tally: WalkTally
  readonly breath: Yielder
}
interface Step {
  readonly folder: Folder
  /** From the start. */
  readonly path: string
  /** From the root. */
  readonly inner: string
  readonly shown: string
  readonly rules: readonly Rules[]
  readonly depth: number
}

export const newTally = (): WalkTally => ({ entries: 0, cut: false, unreadable: 0 })

/** Walks through a directory and all below it, by name, each folder before what is in it. Links are told, never followed; `.git` is left out. */
export async function* walk(roots: Roots, start: Place, limits: WalkLimits, tally: WalkTally): AsyncGenerator<Visit, void> {
  const root = roots.all.filter(one => isInside(one.real, start.real)).sort((a, b) => b.real.length - a.real.length)[0]!
  const inner = relative(root.real, start.real)
  const rules = limits.ignored ? [] : await rulesAbove(roots, root.real, inner)
  await using folder = await openFolder(roots, start)
  const shown = start.shown === '.' ? '' : start.shown
  const way = { limits, tally, closed: relative(root.real, roots.closed), breath: createYielder(limits.signal) }
  yield* below({ folder, path: '', inner, shown, rules, depth: 0 }, way)
}

async function* below(step: Step, way: Way): AsyncGenerator<Visit, void> {
  const found = await entriesOf(step.folder, way)
  const own = way.limits.ignored ? undefined : await readRules(step.folder, new Set(found.map(one => one.name)), step.inner)
  const rules = own ? [...step.rules, own] : step.rules
  for (const entry of found) {
    way.limits.signal.throwIfAborted()
    if (way.breath.isDue()) await way.breath.take()
    const { name } = entry
    const type = typeOf(entry)
    const inner = joined(step.inner, name)
    if (name === '.git' || inner === way.closed || isIgnored(rules, inner, type === 'directory')) continue
    const visit = { folder: step.folder, name, path: joined(step.path, name), shown: joined(step.shown, name), type }
    yield visit
    if (type === 'directory') yield* into({ ...step, ...visit, inner, rules, depth: step.depth + 1 }, way)
  }
}

/** Goes into the folder `name` of a step, unless somebody took it away. */
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

async function entriesOf(folder: Folder, { limits, tally, breath }: Way): Promise<Dirent[]> {
  const found: Dirent[] = []
  // Not readdir: a directory may have millions of entries.
  for await (const entry of await opendir(folder.at('.'))) {
    limits.signal.throwIfAborted()
    if (breath.isDue()) await breath.take()
    if (tally.entries >= limits.entries) {
      tally.cut = true
      break
    }
    tally.entries++
    found.push(entry)
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** What the ignore files say that lie above the start of a walk. */
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

/** What an ignore file says, for paths below its folder. */
interface Rules {
  /** The folder, seen from the root; empty for the root itself. */
  readonly folder: string
  readonly rules: Ignore
}

/** The files that tell what to leave out; later ones weigh more. */
const FILES = ['.gitignore', '.ignore']
const LARGEST = 32_768
/** Wild cards in one part of a path, and lines with so many: more would keep the matching of one name busy for long. */
const WILD = 3
const WILD_LINES = 16

/** Reads the ignore files of a folder, if it has any; `path` is the folder seen from the root. */
async function readRules(folder: Folder, names: ReadonlySet<string>, path: string): Promise<Rules | undefined> {
  const texts: string[] = []
  for (const name of FILES) if (names.has(name)) texts.push(await textOf(folder, name))
  const lines = tame(texts.join('\n').split(/\r?\n/))
  if (lines.length === 0) return undefined
  const { default: ignore } = await import('ignore')
  return { folder: path, rules: ignore({ ignorecase: false }).add(lines) }
}

/** Whether a path from the root is left out: the deepest folder that has a word on it decides. */
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
    // A link, a device or what may not be read says nothing.
    return ''
  }
}

/** The library matches by backtracking: a few lines of many stars are patterns, many are an attack, and are passed over. */
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
