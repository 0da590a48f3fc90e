import { objectOf } from '@svc/plugin-kit'
import type { Repository } from './repository.ts'
import { COUNT, FLAG, listOf, TEXT } from './shapes.ts'

/** How much of a file a difference touches. */
export interface Change {
  readonly path: string
  readonly oldPath?: string
  readonly added: number
  readonly deleted: number
  readonly binary: boolean
}

/** JSON Schema of a change as it is told. */
export const CHANGES = listOf(objectOf({ path: TEXT, old_path: TEXT, added: COUNT, deleted: COUNT, binary: FLAG }, ['old_path']))

/** Flags of every command that shows a difference: no program of the repository is run, and it looks the same everywhere. */
const SHOWN = ['--no-ext-diff', '--no-textconv', '--no-color', '--ignore-submodules=dirty', '--submodule=short', '-M']
const PREFIXES = ['--src-prefix=a/', '--dst-prefix=b/']

/** A difference: the files, and the patch, cut where it is too long. */
export interface Difference {
  readonly files: Change[]
  readonly patch: string
  readonly truncated: boolean
  /** There are more files than are told. */
  readonly more: boolean
}

/** Has `git <command>` show a difference; `rest` are hashes and paths behind `--`. */
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

/** Reads what `--numstat -z` writes; an entry that was cut off at the end is left out. */
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

/** Changes as they are told. */
export const tellChanges = (repository: Repository, files: readonly Change[]) =>
  files.map(({ path, oldPath, ...counts }) => ({
    path: repository.tell(path),
    ...(oldPath === undefined ? {} : { old_path: repository.tell(oldPath) }),
    ...counts,
  }))

/** What was left out, in words. */
export const notesOf = ({ truncated, more, files }: Difference): string[] => [
  ...(truncated ? ['[The difference is cut here: name some of the files in paths to see theirs.]'] : []),
  ...(more ? [`[There are more changed files: these are ${files.length} of them.]`] : []),
]

const decoder = new TextDecoder()

/** Bytes as text; where they were cut, without the line that is not whole. */
export function wholeText(bytes: Buffer, cut: boolean): string {
  const end = cut ? bytes.lastIndexOf(10) + 1 || bytes.length : bytes.length
  return decoder.decode(bytes.subarray(0, end))
}
