import type { Tool } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { CHANGES, differenceOf, notesOf, tellChanges } from './changes.ts'
import { type GitContext, inRepository, type Repository } from './repository.ts'
import { FLAG, parameters, paths, ref, TEXT } from './shapes.ts'

/** What the schema lets through. */
interface Arguments {
  readonly repository?: string
  readonly from?: string
  readonly to?: string
  readonly staged?: boolean
  readonly paths?: readonly string[]
  readonly context?: number
}

/** Makes `git_diff`: what has changed, in the files, in what is staged, or between commits. */
export function createGitDiff(gitContext: GitContext): Tool {
  return toolOf<Arguments>({
    description: `Shows what has changed in a git repository as a patch: the files against what is staged; with staged what is staged against the last commit; with from the files (or to) against a commit. ${gitContext.roots.words}`,
    category: 'git',
    effects: ['read'],
    parameters: parameters({
      from: ref('the commit to compare with: a branch, a tag, a hash, HEAD~1'),
      to: ref('the commit that is compared with from; default the files'),
      staged: { type: 'boolean', description: 'whether to look at what is staged instead of the files; default false' },
      paths: paths('only these files or folders'),
      context: { type: 'integer', minimum: 0, maximum: 50, description: 'lines around each change; default 3' },
    }),
    result: objectOf({ repository: TEXT, files: CHANGES, patch: TEXT, truncated: FLAG }),
    async call(wanted, ctx) {
      return inRepository(gitContext, wanted.repository, ctx, async repository => {
        const rest = [...(await sidesOf(repository, wanted)), '--', ...(await repository.paths(wanted.paths ?? []))]
        const limits = { context: wanted.context ?? 3, most: gitContext.config.max_entries }
        const difference = await differenceOf(repository, ['diff'], rest, limits)
        const { files, patch, truncated, more } = difference
        return answerOf([patch || 'Nothing differs.', ...notesOf(difference)], {
          repository: repository.shown,
          files: tellChanges(repository, files),
          patch,
          truncated: truncated || more,
        })
      })
    },
  })
}

/** What is compared: hashes, so that no word of a caller is an option or a range. */
async function sidesOf(repository: Repository, { from, to, staged = false }: Arguments): Promise<string[]> {
  const first = from ?? (to === undefined ? undefined : 'HEAD')
  return [
    ...(staged && to === undefined ? ['--cached'] : []),
    ...(first === undefined ? [] : [await repository.commit(first)]),
    ...(to === undefined ? [] : [await repository.commit(to)]),
  ]
}
