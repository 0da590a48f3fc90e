import type { Tool } from '@svc/core/contracts'
import type { Alone } from '@svc/roots'
import { gitFailed, hasFilters, nothingToCommit } from './errors.ts'
import type { Ground } from './open.ts'
import { openRepository, type Repository } from './repository.ts'
import { answer, COUNT, parameters, paths, shape, TEXT } from './shapes.ts'

/** What the schema lets through. */
interface Arguments {
  readonly repository?: string
  readonly message: string
  readonly paths?: readonly string[]
  readonly all?: boolean
}

/** Makes `git_commit`. Hooks and filters of the repository run only where the configuration trusts it; commits are not signed. */
export function createGitCommit({ roots, config }: Ground, alone: Alone): Tool {
  return {
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
    result: shape({
      repository: TEXT,
      commit: TEXT,
      branch: { type: ['string', 'null'], description: 'null where no branch is checked out' },
      subject: TEXT,
      files: { ...COUNT, description: 'how many it changes' },
    }),
    async call(args, { signal }) {
      signal.throwIfAborted()
      const wanted = args as unknown as Arguments
      await using repository = await openRepository(roots, wanted.repository ?? '.', config, signal, config.trust_repositories)
      if (repository.filters.length > 0 && !config.trust_repositories) throw hasFilters()
      // Two commits at once would find each other's lock.
      return await alone(repository.key, async () => {
        await commit(repository, wanted, config.trust_repositories)
        return told(repository)
      })
    },
  }
}

async function commit(repository: Repository, { message, paths: given = [], all = false }: Arguments, trusted: boolean) {
  const only = await repository.paths(given)
  if (only.length > 0) await repository.run(['add', '--all', '--', ...only])
  const options = [
    '--quiet',
    '--file=-',
    '--cleanup=whitespace',
    '--no-status',
    ...(trusted ? [] : ['--no-verify', '--no-gpg-sign']),
  ]
  const which = only.length > 0 ? ['--only', '--', ...only] : all ? ['--all', '--'] : ['--']
  const { code, stdout, stderr } = await repository.run(['commit', ...options, ...which], { input: message, anyCode: true })
  if (code === 0) return
  if (/nothing (added )?to commit|no changes added/.test(stdout.toString() + stderr)) throw nothingToCommit()
  throw code === 1 && stderr.trim() === '' ? nothingToCommit() : gitFailed(stderr)
}

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
  return answer([`Committed ${hash.slice(0, 12)} to ${facts.branch ?? 'no branch'}: ${facts.subject}`], facts)
}
