import type { Tool, ToolResult } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { type GitContext, inRepository, type Repository } from './repository.ts'
import { COUNT, FLAG, listOf, parameters, TEXT } from './shapes.ts'

const WORD = { enum: ['added', 'modified', 'deleted', 'renamed', 'copied', 'type_changed', 'unmerged', 'untracked'] }

/** Creates `git_status`, which shows the branch and changed files. */
export function createGitStatus(gitContext: GitContext): Tool {
  return toolOf<{ readonly repository?: string; readonly untracked?: boolean }>({
    description: `Shows the branch of a git repository and its changed files: staged, unstaged, untracked, conflicting. ${gitContext.roots.words}`,
    category: 'git',
    effects: ['read'],
    workplace: true,
    parameters: parameters({
      untracked: { type: 'boolean', description: 'whether to list untracked files; default true' },
    }),
    result: objectOf(
      {
        repository: TEXT,
        branch: { type: ['string', 'null'], description: 'null without a checked-out branch' },
        commit: { type: ['string', 'null'], description: 'null before the first commit' },
        upstream: TEXT,
        ahead: COUNT,
        behind: COUNT,
        clean: FLAG,
        files: listOf(objectOf({ path: TEXT, staged: WORD, unstaged: WORD, old_path: TEXT }, ['staged', 'unstaged', 'old_path'])),
        truncated: FLAG,
      },
      ['upstream', 'ahead', 'behind']
    ),
    async call({ repository: path, untracked = true }, ctx) {
      return inRepository(gitContext, path, ctx, async repository => {
        const { stdout, truncated } = await repository.run(
          [
            'status',
            '--porcelain=v2',
            '-z',
            '--branch',
            `--untracked-files=${untracked ? 'all' : 'no'}`,
            '--ignore-submodules=dirty',
          ],
          { most: MOST }
        )
        return describeStatus(repository, parseStatus(stdout.toString()), truncated, gitContext.config.max_entries)
      })
    },
  })
}

/** Maximum bytes of the output of git, of which only a part is shown. */
const MOST = 16_777_216

function describeStatus(repository: Repository, status: Status, cut: boolean, most: number): ToolResult {
  const { branch, commit, upstream, ahead, behind, files } = status
  const shown = files.slice(0, most)
  const truncated = cut || files.length > most
  const head = `On ${branch === null ? `no branch, at ${commit?.slice(0, 12)}` : `branch ${branch}`}${commit === null ? ', before its first commit' : ''}`
  const distance = upstream === undefined ? '' : `; ${ahead ?? 0} ahead of and ${behind ?? 0} behind ${upstream}`
  const lines = shown.map(file => lineOf(repository, file))
  const note = truncated
    ? [`[More files changed; these are the first ${shown.length}.]`]
    : files.length === 0
      ? ['No changes.']
      : []
  return answerOf([`${head}${distance}.`, ...lines, ...note], {
    repository: repository.shown,
    branch,
    commit,
    ...(upstream === undefined ? {} : { upstream, ahead: ahead ?? 0, behind: behind ?? 0 }),
    clean: files.length === 0,
    files: shown.map(({ path, oldPath, ...words }) => ({
      path: repository.displayPath(path),
      ...words,
      ...(oldPath === undefined ? {} : { old_path: repository.displayPath(oldPath) }),
    })),
    truncated,
  })
}

function lineOf(repository: Repository, { path, oldPath, staged, unstaged }: FileState): string {
  const words = [...(staged ? [`${staged} (staged)`] : []), ...(unstaged ? [unstaged] : [])].join(', ')
  const from = oldPath === undefined ? '' : ` from ${repository.displayPath(oldPath)}`
  return `${words}: ${repository.displayPath(path)}${from}`
}

/** Changes of a file. */
type FileWord = 'added' | 'modified' | 'deleted' | 'renamed' | 'copied' | 'type_changed' | 'unmerged' | 'untracked'

/** A file that differs from the last commit. */
interface FileState {
  readonly path: string
  readonly staged?: FileWord
  readonly unstaged?: FileWord
  readonly oldPath?: string
}

interface Status {
  /** `null` without a checked-out branch. */
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

/** Parses the output of `git status --porcelain=v2 -z --branch`. Skips a truncated entry at the end. */
function parseStatus(text: string): Status {
  const status: Status = { branch: null, commit: null, files: [] }
  // after the last zero byte is nothing, or a truncated entry
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

/** The path after a number of fields. It can contain blanks. */
function after(entry: string, fields: number): string {
  let from = 0
  for (let field = 0; field < fields; field++) from = entry.indexOf(' ', from) + 1
  return entry.slice(from)
}

function changes(entry: string): Pick<FileState, 'staged' | 'unstaged'> {
  const [staged, unstaged] = [WORDS[entry[2]!], WORDS[entry[3]!]]
  return { ...(staged ? { staged } : {}), ...(unstaged ? { unstaged } : {}) }
}
