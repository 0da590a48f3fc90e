import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, extname, join, relative, resolve, sep } from 'node:path'
import { asSvcError, readConfigFile } from '@svc/core'
import type { WorkflowProblem } from '@svc/core/contracts'

/** A team file that was read. */
export interface TeamFile {
  /** The reported path, relative to its root. */
  readonly source: string
  /** The file name without extension. */
  readonly stem: string
  readonly value: unknown
  /** At most one problem: why it cannot be read. */
  readonly problems: readonly WorkflowProblem[]
  /** The line of a path in the file, or of the nearest parent. */
  readonly line: (path: string) => number | undefined
}

const ENDINGS: ReadonlySet<string> = new Set(['.yaml', '.yml', '.json'])
const [LARGEST, MOST] = [262_144, 1_000]

/** The folders with team files, each read once: the working directory can be the svc home. Missing folders count as empty. */
export class TeamFiles {
  readonly #roots: readonly string[]
  /** Files that were read, with their fingerprints, by path. */
  #read = new Map<string, { readonly mark: string; readonly file: TeamFile }>()

  constructor(folders: readonly string[]) {
    this.#roots = folders.map(folder => resolve(folder))
  }

  /** The current files, in a fixed order. */
  async all(): Promise<readonly TeamFile[]> {
    const roots = await realFolders(this.#roots)
    const lists = await Promise.all(roots.map(async root => (await filesIn(root)).map(path => ({ root, path }))))
    const found = await Promise.all(
      lists
        .flat()
        .slice(0, MOST)
        .map(({ root, path }) => this.#file(root, path))
    )
    const there = found.filter(item => item !== undefined)
    this.#read = new Map(there.map(item => [item.path, item]))
    return there.map(({ file }) => file)
  }

  /** Ignores links that lead out of their root. */
  async #file(root: string, path: string) {
    const real = await realpath(path).catch(() => undefined)
    if (!real?.startsWith(root + sep)) return undefined
    const facts = await stat(real).catch(() => undefined)
    if (!facts?.isFile()) return undefined
    const mark = `${facts.mtimeMs} ${facts.size} ${facts.ino}`
    const there = this.#read.get(path)
    return there?.mark === mark ? { path, ...there } : { path, mark, file: await fileOf(relative(root, real), real, facts.size) }
  }
}

/** The folders without links, each once. */
async function realFolders(folders: readonly string[]): Promise<readonly string[]> {
  const real = await Promise.all(folders.map(folder => realpath(folder).catch(() => undefined)))
  return [...new Set(real)].filter(folder => folder !== undefined)
}

async function filesIn(root: string): Promise<string[]> {
  const names = await readdir(root).catch(() => [])
  return names
    .filter(name => ENDINGS.has(extname(name)) && !name.startsWith('.'))
    .toSorted()
    .map(name => join(root, name))
}

async function fileOf(source: string, file: string, size: number): Promise<TeamFile> {
  const about = { source, stem: basename(file, extname(file)) }
  if (size > LARGEST) return unreadable(about, `has ${size} bytes, more than ${LARGEST}`)
  try {
    const layer = await readConfigFile(file)
    return {
      ...about,
      value: layer.value,
      problems: [],
      line: path => layer.line?.(path.split(/[.[\]]+/).filter(key => key !== '')),
    }
  } catch (error) {
    const { message, where } = asSvcError(error, 'CONFIG_UNREADABLE')
    return unreadable(about, message, Number(/:(\d+)$/.exec(where ?? '')?.[1]) || undefined)
  }
}

const unreadable = (about: Pick<TeamFile, 'source' | 'stem'>, message: string, line?: number): TeamFile => ({
  ...about,
  value: undefined,
  problems: [{ message, path: '', ...(line === undefined ? {} : { line }) }],
  line: () => undefined,
})
