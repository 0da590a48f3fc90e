import { objectOf } from '@svc/plugin-kit'
import type { Repository } from './repository.ts'
import { COUNT, FLAG, listOf, TEXT } from './shapes.ts'

/** Changed lines of a file. */
export interface Change {
  readonly path: string
  readonly oldPath?: string
  readonly added: number
  readonly deleted: number
  readonly binary: boolean
}

/** JSON Schema of changed files. */
export const CHANGES = listOf(objectOf({ path: TEXT, old_path: TEXT, added: COUNT, deleted: COUNT, binary: FLAG }, ['old_path']))

/** Flags of every command that shows a diff: they run no program of the repository, and make the output independent of its settings. */
const SHOWN = ['--no-ext-diff', '--no-textconv', '--no-color', '--ignore-submodules=dirty', '--submodule=short', '-M']
const PREFIXES = ['--src-prefix=a/', '--dst-prefix=b/']

/** A diff: its files, and its patch, which can be truncated. */
export interface Difference {
  readonly files: Change[]
  readonly patch: string
  readonly truncated: boolean
  /** Whether there are more files than reported. */
  readonly more: boolean
}

/** Runs `git <command>` to produce a diff. `rest` contains hashes and paths after `--`. */
export async function differenceOf(
  repository: Repository,
  command: readonly string[],
  rest: readonly string[],
  { context, most }: { readonly context: number; readonly most: number }
): Promise<Difference> {
  const counted = await repository.run([...command, ...SHOWN, '--numstat', '-z', ...rest], { most: 8_388_608 })
  const patch = await repository.run([...command, ...SHOWN, ...PREFIXES, '--patch', `--unified=${context}`, ...rest])
  const files = parseNumstat(counted.stdout.toString())
  return {
    files: files.slice(0, most),
    more: files.length > most || counted.truncated,
    patch: wholeText(patch.stdout, patch.truncated),
    truncated: patch.truncated,
  }
}

/** Parses the output of `--numstat -z`. Skips a truncated entry at the end. */
function parseNumstat(text: string): Change[] {
  const entries = text.split('\0').slice(0, -1)
  const files: Change[] = []
  for (let at = 0; at < entries.length; at++) {
    const match = /^\n?(\d+|-)\t(\d+|-)\t([^]*)$/.exec(entries[at]!)
    if (!match) continue
    const [, added, deleted, path] = match as unknown as [string, string, string, string]
    const counts = { added: Number(added) || 0, deleted: Number(deleted) || 0, binary: added === '-' }
    if (path !== '') files.push({ path, ...counts })
    else if (at + 2 < entries.length) files.push({ oldPath: entries[++at]!, path: entries[++at]!, ...counts })
  }
  return files
}

/** Describes changed files with displayed paths. */
export const describeChanges = (repository: Repository, files: readonly Change[]) =>
  files.map(({ path, oldPath, ...counts }) => ({
    path: repository.displayPath(path),
    ...(oldPath === undefined ? {} : { old_path: repository.displayPath(oldPath) }),
    ...counts,
  }))

/** Notes on omitted parts. */
export const notesOf = ({ truncated, more, files }: Difference): string[] => [
  ...(truncated ? ['[The diff is truncated; set paths to see the diff of single files.]'] : []),
  ...(more ? [`[More files changed; these are the first ${files.length}.]`] : []),
]

const decoder = new TextDecoder()

/** Decodes bytes. Truncated text ends before its incomplete line. */
export function wholeText(bytes: Buffer, cut: boolean): string {
  const end = cut ? bytes.lastIndexOf(10) + 1 || bytes.length : bytes.length
  return decoder.decode(bytes.subarray(0, end))
}
