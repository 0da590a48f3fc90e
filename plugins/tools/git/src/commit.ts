import type { SvcError } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { type KeyedLock, isProtected } from '@svc/safe-fs'
import { gitFailed, hasFilters, noMessage, nothingToCommit, tooManyChanges } from './errors.ts'
import { type GitContext, openRepository, type Repository } from './repository.ts'
import { COUNT, parameters, paths, TEXT } from './shapes.ts'

/** Arguments as the schema allows them. */
interface Arguments {
  readonly repository?: string
  readonly message: string
  readonly paths?: readonly string[]
  readonly all?: boolean
}

/** Creates `git_commit`. Hooks and filters of the repository run only if the configuration trusts it. Commits are not signed. */
export function createGitCommit(gitContext: GitContext, alone: KeyedLock): Tool {
  const { roots, config } = gitContext
  return toolOf<Arguments>({
    description: `Commits to a git repository: the staged changes; with paths, these files as they are now, including new and deleted ones; with all, every change of tracked files. ${roots.words}`,
    category: 'git',
    effects: config.trust_repositories ? ['write', 'execute'] : ['write'],
    workplace: true,
    parameters: parameters(
      {
        message: { type: 'string', minLength: 1, maxLength: 20_000, description: 'commit message' },
        paths: paths('files or folders to commit, as they are now'),
        all: { type: 'boolean', description: 'whether to commit all changes of tracked files; default false' },
      },
      ['message']
    ),
    result: objectOf({
      repository: TEXT,
      commit: TEXT,
      branch: { type: ['string', 'null'], description: 'null without a checked-out branch' },
      subject: TEXT,
      files: { ...COUNT, description: 'number of changed files' },
    }),
    async call(wanted, ctx) {
      if (wanted.message.trim() === '') throw noMessage()
      await using repository = await openRepository(gitContext, wanted.repository ?? '.', ctx, config.trust_repositories)
      const owner = await roots.ownerOf(repository.key)
      if (owner !== undefined) throw isProtected(repository.shown, `belongs to ${owner}, and is read-only for tools`)
      if (repository.filters.length > 0 && !config.trust_repositories) throw hasFilters()
      // concurrent commits would fail at the lock of git
      return await alone(repository.key, async () => {
        await commit(repository, wanted, config.trust_repositories)
        return describeCommit(repository)
      })
    },
  })
}

async function commit(repository: Repository, { message, paths: given = [], all = false }: Arguments, trusted: boolean) {
  const only = await repository.paths(given)
  const unstage = only.length > 0 || all ? await stage(repository, only, only.length > 0) : undefined
  try {
    await commitStaged(repository, message, only, trusted)
  } catch (error) {
    // if unstaging fails, too, the first error is more useful
    await unstage?.().catch(() => {})
    throw error
  }
}

async function commitStaged(repository: Repository, message: string, only: readonly string[], trusted: boolean) {
  if (!(await hasStaged(repository, only))) throw await nothingIn(repository, only)
  const options = [
    '--quiet',
    '--file=-',
    '--cleanup=whitespace',
    '--no-status',
    // without this, an empty commit makes git describe the state, which looks into nested repositories
    '--allow-empty',
    ...(trusted ? [] : ['--no-verify', '--no-gpg-sign']),
  ]
  // the whole folder is already staged; with parts, git fails if a folder has replaced a file
  const which = only.length > 0 && !only.includes('.') ? ['--only', '--', ...only] : ['--']
  const { code, stderr } = await repository.run(['commit', ...options, ...which], { input: message, anyCode: true })
  if (code !== 0) throw gitFailed(stderr)
}

async function nothingIn(repository: Repository, only: readonly string[]): Promise<SvcError> {
  if (only.length === 0) return nothingToCommit()
  const known = await repository.run(['ls-files', '--cached', '--error-unmatch', '--', ...only], {
    anyCode: true,
    most: MAX_LIST_BYTES,
  })
  return known.code === 1 ? gitFailed(known.stderr) : nothingToCommit()
}

/** Maximum bytes of a list whose content is not used. */
const MAX_LIST_BYTES = 16_777_216

async function describeCommit(repository: Repository) {
  const hash = await repository.commit('HEAD')
  const branch = await repository.run(['symbolic-ref', '--quiet', '--short', 'HEAD'], { anyCode: true })
  const subject = await repository.run(['log', '--format=%s', '--max-count=1', hash, '--'])
  const changed = await repository.run([
    'diff-tree',
    '--root',
    '--no-commit-id',
    '--name-only',
    '-r',
    '-z',
    '-m',
    '--first-parent',
    hash,
  ])
  const facts = {
    repository: repository.shown,
    commit: hash,
    branch: branch.code === 0 ? branch.stdout.toString().trim() : null,
    subject: subject.stdout.toString().trim(),
    files: changed.stdout.toString().split('\0').length - 1,
  }
  return answerOf([`Committed ${hash.slice(0, 12)} to ${facts.branch ?? 'no branch'}: ${facts.subject}`], facts)
}

// `git add` and `git commit --all` start `git status` in each nested repository, which runs its filters. No setting prevents that for certain
// (`submodule.<name>.ignore` is in the repository). So staging uses commands that never look into nested repositories.

/** Maximum bytes of the paths that a commit stages. */
const MAX_PATH_BYTES = 16_777_216

/**
 * Stages changes of tracked files, of all or of some paths; with `others`, also untracked files. Returns a function that restores
 * the previous index entries of these paths.
 */
async function stage(repository: Repository, only: readonly string[], others: boolean): Promise<() => Promise<void>> {
  const changed = await pathsOf(repository, ['--modified', '--deleted'], only)
  const added = others ? await pathsOf(repository, ['--others', '--exclude-standard'], only) : []
  // deleted paths first, because a folder can have replaced a file
  const paths = [...new Set([...changed, ...added])]
  if (paths.length === 0) return async () => {}
  const before = await stagedAs(repository, only, new Set(paths))
  await repository.run(['update-index', '--add', '--replace', '--remove', '-z', '--stdin'], { input: lines(paths) })
  return async () => {
    const gone = paths.map(path => `0 ${NO_OBJECT}\t${path}`)
    await repository.run(['update-index', '--replace', '-z', '--index-info'], { input: lines([...gone, ...before]) })
  }
}

/** A null hash, which removes a path from the index. */
const NO_OBJECT = '0'.repeat(40)

const lines = (texts: readonly string[]) => Buffer.from(texts.map(text => `${text}\0`).join(''), 'latin1')

/** The index entries of these paths, in the format of `update-index --index-info`. */
async function stagedAs(repository: Repository, only: readonly string[], paths: ReadonlySet<string>): Promise<string[]> {
  const { stdout } = await repository.run(['ls-files', '-z', '--stage', '--', ...only], { most: MAX_PATH_BYTES })
  return stdout
    .toString('latin1')
    .split('\0')
    .filter(entry => paths.has(entry.slice(entry.indexOf('\t') + 1)))
}

/** Paths in Latin-1, with a character for each byte, because they need not be UTF-8. */
async function pathsOf(repository: Repository, which: readonly string[], only: readonly string[]): Promise<string[]> {
  const { stdout, truncated } = await repository.run(['ls-files', '-z', ...which, '--', ...only], { most: MAX_PATH_BYTES })
  if (truncated) throw tooManyChanges()
  // skip untracked nested repositories, whose paths end with a slash
  return stdout
    .toString('latin1')
    .split('\0')
    .filter(path => path !== '' && !path.endsWith('/'))
}

/** Whether the index differs from the last commit, in all or some paths, or a merge must be concluded. */
async function hasStaged(repository: Repository, only: readonly string[]): Promise<boolean> {
  const merge = await repository.run(['rev-parse', '--verify', '--quiet', 'MERGE_HEAD'], { anyCode: true })
  if (merge.code === 0) return true
  if ((await repository.head()) === undefined)
    return (await repository.run(['ls-files', '--cached', '-z', '--', ...only], { most: 1 })).stdout.length > 0
  const { code } = await repository.run(
    ['diff-index', '--cached', '--quiet', '--ignore-submodules=dirty', 'HEAD', '--', ...only],
    {
      anyCode: true,
    }
  )
  return code !== 0
}
