import type { Tool } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { CHANGES, differenceOf, notesOf, describeChanges } from './changes.ts'
import { type GitContext, inRepository, type Repository } from './repository.ts'
import { FLAG, parameters, paths, ref, TEXT } from './shapes.ts'

/** Arguments as the schema allows them. */
interface Arguments {
  readonly repository?: string
  readonly from?: string
  readonly to?: string
  readonly staged?: boolean
  readonly paths?: readonly string[]
  readonly context?: number
}

/** Creates `git_diff`, which shows changes in files, in the index, or between commits. */
export function createGitDiff(gitContext: GitContext): Tool {
  return toolOf<Arguments>({
    description: `Shows changes in a git repository as a patch: the files against the index; with staged, the index against the last commit; with from, the files (or to) against a commit. ${gitContext.roots.words}`,
    category: 'git',
    effects: ['read'],
    workplace: true,
    parameters: parameters({
      from: ref('base commit: a branch, a tag, a hash, HEAD~1'),
      to: ref('commit to compare with from; default: the files'),
      staged: { type: 'boolean', description: 'whether to compare the index instead of the files; default false' },
      paths: paths('only these files or folders'),
      context: { type: 'integer', minimum: 0, maximum: 50, description: 'context lines around each change; default 3' },
    }),
    result: objectOf({ repository: TEXT, files: CHANGES, patch: TEXT, truncated: FLAG }),
    async call(wanted, ctx) {
      return inRepository(gitContext, wanted.repository, ctx, async repository => {
        const rest = [...(await sidesOf(repository, wanted)), '--', ...(await repository.paths(wanted.paths ?? []))]
        const limits = { context: wanted.context ?? 3, most: gitContext.config.max_entries }
        const difference = await differenceOf(repository, ['diff'], rest, limits)
        const { files, patch, truncated, more } = difference
        return answerOf([patch || 'No differences.', ...notesOf(difference)], {
          repository: repository.shown,
          files: describeChanges(repository, files),
          patch,
          truncated: truncated || more,
        })
      })
    },
  })
}

/** The sides of the diff as hashes, so that no argument of a caller is an option or a range. */
async function sidesOf(repository: Repository, { from, to, staged = false }: Arguments): Promise<string[]> {
  const first = from ?? (to === undefined ? undefined : 'HEAD')
  return [
    ...(staged && to === undefined ? ['--cached'] : []),
    ...(first === undefined ? [] : [await repository.commit(first)]),
    ...(to === undefined ? [] : [await repository.commit(to)]),
  ]
}
