import type { Ignore } from 'ignore'
import { type Folder, openFileIn } from './opened.ts'

/** What an ignore file says, for paths below its folder. */
export interface Rules {
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
export async function readRules(folder: Folder, names: ReadonlySet<string>, path: string): Promise<Rules | undefined> {
  const texts: string[] = []
  for (const name of FILES) if (names.has(name)) texts.push(await textOf(folder, name))
  const lines = tame(texts.join('\n').split(/\r?\n/))
  if (lines.length === 0) return undefined
  const { default: ignore } = await import('ignore')
  return { folder: path, rules: ignore({ ignorecase: false }).add(lines) }
}

/** Whether a path from the root is left out: the deepest folder that has a word on it decides. */
export function isIgnored(rules: readonly Rules[], path: string, isFolder: boolean): boolean {
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
