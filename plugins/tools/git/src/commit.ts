import type { SvcError } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { type Alone, isProtected } from '@svc/safe-fs'
import { gitFailed, hasFilters, noMessage, nothingToCommit, tooManyChanges } from './errors.ts'
import { type GitContext, openRepository, type Repository } from './repository.ts'
import { COUNT, parameters, paths, TEXT } from './shapes.ts'

/** What the schema lets through. */
interface Arguments {
  readonly repository?: string
  readonly message: string
  readonly paths?: readonly string[]
  readonly all?: boolean
}

/** Makes `git_commit`. Hooks and filters of the repository run only where the configuration trusts it; commits are not signed. */
export function createGitCommit(gitContext: GitContext, alone: Alone): Tool {
  const { roots, config } = gitContext
  return toolOf<Arguments>({
    description: `Commits to a git repository: what is staged; or with paths these files as they are now, new and deleted ones too; or with all every change of files that git knows. ${roots.words}`,
    category: 'git',
    effects: config.trust_repositories ? ['write', 'execute'] : ['write'],
    parameters: parameters(
      {
        message: { type: 'string', minLength: 1, maxLength: 20_000, description: 'what the commit says of itself' },
        paths: paths('the files or folders to commit, as they are now'),
        all: { type: 'boolean', description: 'whether to commit all changes of files that git knows; default false' },
      },
      ['message']
    ),
    result: objectOf({
      repository: TEXT,
      commit: TEXT,
      branch: { type: ['string', 'null'], description: 'null where no branch is checked out' },
      subject: TEXT,
      files: { ...COUNT, description: 'how many it changes' },
    }),
    async call(wanted, ctx) {
      if (wanted.message.trim() === '') throw noMessage()
      await using repository = await openRepository(gitContext, wanted.repository ?? '.', ctx, config.trust_repositories)
      const owner = await roots.ownerOf(repository.key)
      if (owner !== undefined) throw isProtected(repository.shown, `belongs to ${owner}: tools may read it, not change it`)
      if (repository.filters.length > 0 && !config.trust_repositories) throw hasFilters()
      // Two commits at once would find each other's lock.
      return await alone(repository.key, async () => {
        await commit(repository, wanted, config.trust_repositories)
        return told(repository)
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
    // where that fails too, or the turn was aborted, why there is no commit says more
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
    // Where it finds nothing to commit it would say why, and look into the repositories within this one.
    '--allow-empty',
    ...(trusted ? [] : ['--no-verify', '--no-gpg-sign']),
  ]
  // All is staged where the whole folder is named; git stumbles over a folder in the place of a file when it is asked for parts.
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

/** Bytes of a list that nobody reads. */
const MAX_LIST_BYTES = 16_777_216

async function told(repository: Repository) {
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

// `git add` and `git commit --all` start `git status` in each repository within this one, with its settings: its filters would be run, and no setting of ours
// forbids it for good (`submodule.<name>.ignore` lies in the repository). So what is staged is told by commands that never look into them.

/** Bytes of the paths that one commit stages. */
const MAX_PATH_BYTES = 16_777_216

/**
 * Stages what has changed in files that git knows, in all or in some of them; and, with `others`, those it does not know yet. What it returns takes that back:
 * these paths are staged as they were before.
 */
async function stage(repository: Repository, only: readonly string[], others: boolean): Promise<() => Promise<void>> {
  const changed = await pathsOf(repository, ['--modified', '--deleted'], only)
  const added = others ? await pathsOf(repository, ['--others', '--exclude-standard'], only) : []
  // Those that are gone first: a folder may have taken the place of a file.
  const paths = [...new Set([...changed, ...added])]
  if (paths.length === 0) return async () => {}
  const before = await stagedAs(repository, only, new Set(paths))
  await repository.run(['update-index', '--add', '--replace', '--remove', '-z', '--stdin'], { input: lines(paths) })
  return async () => {
    const gone = paths.map(path => `0 ${NO_OBJECT}\t${path}`)
    await repository.run(['update-index', '--replace', '-z', '--index-info'], { input: lines([...gone, ...before]) })
  }
}

/** The hash that stands for nothing, as long as hashes mostly are: git takes it for a path that goes. */
const NO_OBJECT = '0'.repeat(40)

const lines = (texts: readonly string[]) => Buffer.from(texts.map(text => `${text}\0`).join(''), 'latin1')

/** What the index has for these paths, as `update-index --index-info` takes it. */
async function stagedAs(repository: Repository, only: readonly string[], paths: ReadonlySet<string>): Promise<string[]> {
  const { stdout } = await repository.run(['ls-files', '-z', '--stage', '--', ...only], { most: MAX_PATH_BYTES })
  return stdout
    .toString('latin1')
    .split('\0')
    .filter(entry => paths.has(entry.slice(entry.indexOf('\t') + 1)))
}

/** Paths as git writes them, a character for each byte: they need not be UTF-8. */
async function pathsOf(repository: Repository, which: readonly string[], only: readonly string[]): Promise<string[]> {
  const { stdout, truncated } = await repository.run(['ls-files', '-z', ...which, '--', ...only], { most: MAX_PATH_BYTES })
  if (truncated) throw tooManyChanges()
  // What ends like a folder is a repository of its own that this one does not know: it stays so.
  return stdout
    .toString('latin1')
    .split('\0')
    .filter(path => path !== '' && !path.endsWith('/'))
}

/** Whether what is staged differs from the last commit, in all files or in some; also where a merge is to be concluded. */
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
