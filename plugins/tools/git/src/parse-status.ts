/** What may have become of a file. */
type FileWord = 'added' | 'modified' | 'deleted' | 'renamed' | 'copied' | 'type_changed' | 'unmerged' | 'untracked'

/** A file that is not as the last commit has it. */
export interface FileState {
  readonly path: string
  readonly staged?: FileWord
  readonly unstaged?: FileWord
  readonly oldPath?: string
}

export interface Status {
  /** `null` where no branch is checked out. */
  branch: string | null
  /** `null` before the first commit. */
  commit: string | null
  upstream?: string
  ahead?: number
  behind?: number
  readonly files: FileState[]
}

const WORDS: Readonly<Record<string, FileWord>> = {
  A: 'added',
  M: 'modified',
  D: 'deleted',
  R: 'renamed',
  C: 'copied',
  T: 'type_changed',
  U: 'unmerged',
}

/** Reads what `git status --porcelain=v2 -z --branch` writes; an entry that was cut off at the end is left out. */
export function parseStatus(text: string): Status {
  const status: Status = { branch: null, commit: null, files: [] }
  // What follows the last zero is nothing, or was cut.
  const entries = text.split('\0').slice(0, -1)
  for (let at = 0; at < entries.length; at++) {
    const entry = entries[at]!
    if (entry.startsWith('# ')) header(status, entry)
    else if (entry.startsWith('? ')) status.files.push({ path: entry.slice(2), unstaged: 'untracked' })
    else if (entry.startsWith('1 ')) status.files.push({ path: after(entry, 8), ...changes(entry) })
    else if (entry.startsWith('u ')) status.files.push({ path: after(entry, 10), unstaged: 'unmerged' })
    else if (entry.startsWith('2 ') && at + 1 < entries.length)
      status.files.push({ path: after(entry, 9), ...changes(entry), oldPath: entries[++at]! })
  }
  return status
}

function header(status: Status, entry: string): void {
  const [, name, ...rest] = entry.split(' ')
  const value = rest.join(' ')
  if (name === 'branch.oid') status.commit = value === '(initial)' ? null : value
  if (name === 'branch.head') status.branch = value === '(detached)' ? null : value
  if (name === 'branch.upstream') status.upstream = value
  if (name !== 'branch.ab') return
  status.ahead = Number(rest[0])
  status.behind = -Number(rest[1])
}

/** The path stands behind so many fields; it may hold blanks. */
function after(entry: string, fields: number): string {
  let from = 0
  for (let field = 0; field < fields; field++) from = entry.indexOf(' ', from) + 1
  return entry.slice(from)
}

function changes(entry: string): Pick<FileState, 'staged' | 'unstaged'> {
  const [staged, unstaged] = [WORDS[entry[2]!], WORDS[entry[3]!]]
  return { ...(staged ? { staged } : {}), ...(unstaged ? { unstaged } : {}) }
}
