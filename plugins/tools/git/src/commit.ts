import type { SvcError } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import { type Alone, isProtected } from '@svc/safe-fs'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { gitFailed, hasFilters, noMessage, nothingToCommit } from './errors.ts'
import { type Ground, openRepository, type Repository } from './repository.ts'
import { COUNT, parameters, paths, TEXT } from './shapes.ts'
import { hasStaged, stage } from './stage.ts'

/** What the schema lets through. */
interface Arguments {
  readonly repository?: string
  readonly message: string
  readonly paths?: readonly string[]
  readonly all?: boolean
}

/** Makes `git_commit`. Hooks and filters of the repository run only where the configuration trusts it; commits are not signed. */
export function createGitCommit(ground: Ground, alone: Alone): Tool {
  const { roots, config } = ground
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
      await using repository = await openRepository(ground, wanted.repository ?? '.', ctx, config.trust_repositories)
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
  const known = await repository.run(['ls-files', '--cached', '--error-unmatch', '--', ...only], { anyCode: true, most: MOST })
  return known.code === 1 ? gitFailed(known.stderr) : nothingToCommit()
}

/** Bytes of a list that nobody reads. */
const MOST = 16_777_216

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
