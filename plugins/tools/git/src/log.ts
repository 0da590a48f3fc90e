import type { Tool } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { type Commit, COMMITS, FORMAT, parseCommits } from './commits.ts'
import { type Ground, inRepository } from './repository.ts'
import { FLAG, parameters, paths, ref, TEXT } from './shapes.ts'

/** What the schema lets through. */
interface Arguments {
  readonly repository?: string
  readonly from?: string
  readonly paths?: readonly string[]
  readonly limit?: number
  readonly skip?: number
}

const LIMIT = 20
const MOST = 4_194_304

/** Makes `git_log`: the commits that led to one. */
export function createGitLog(ground: Ground): Tool {
  return toolOf<Arguments>({
    description: `Lists the commits of a git repository, the newest first. ${ground.roots.words}`,
    category: 'git',
    effects: ['read'],
    parameters: parameters({
      from: ref('the commit to begin with: a branch, a tag, a hash; default HEAD'),
      paths: paths('only commits that change these files or folders'),
      limit: { type: 'integer', minimum: 1, maximum: 200, description: `how many at most; default ${LIMIT}` },
      skip: { type: 'integer', minimum: 0, maximum: 1_000_000, description: 'how many to pass over; default 0' },
    }),
    result: objectOf({ repository: TEXT, commits: COMMITS, truncated: FLAG }),
    async call({ repository: path, from, paths: only = [], limit = LIMIT, skip = 0 }, ctx) {
      return inRepository(ground, path, ctx, async repository => {
        const start = from === undefined ? await repository.head() : await repository.commit(from)
        if (start === undefined)
          return answerOf(['There is no commit yet.'], { repository: repository.shown, commits: [], truncated: false })
        // One more than asked for tells whether there are more.
        const options = ['-z', FORMAT, '--no-mailmap', '--no-show-signature', `--max-count=${limit + 1}`, `--skip=${skip}`]
        const { stdout, truncated } = await repository.run(['log', ...options, start, '--', ...(await repository.paths(only))], {
          most: MOST,
        })
        const all = parseCommits(stdout.toString())
        const commits = all.slice(0, limit)
        const more = truncated || all.length > limit
        const note = more ? [`[There are more: go on with skip ${skip + commits.length}.]`] : []
        const lines = commits.length === 0 ? ['No commit fits.'] : commits.map(lineOf)
        return answerOf([...lines, ...note], {
          repository: repository.shown,
          commits: commits.map(commit => ({ ...commit })),
          truncated: more,
        })
      })
    },
  })
}

const lineOf = ({ commit, date, author, subject }: Commit) => `${commit.slice(0, 12)} ${date.slice(0, 10)} ${author}: ${subject}`
