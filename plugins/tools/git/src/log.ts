import type { Tool } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { type GitContext, inRepository } from './repository.ts'
import { FLAG, listOf, parameters, paths, ref, TEXT } from './shapes.ts'

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
export function createGitLog(gitContext: GitContext): Tool {
  return toolOf<Arguments>({
    description: `Lists the commits of a git repository, the newest first. ${gitContext.roots.words}`,
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
      return inRepository(gitContext, path, ctx, async repository => {
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

/** A commit, as it is told. */
interface Commit {
  readonly commit: string
  readonly parents: string[]
  readonly author: string
  readonly email: string
  /** ISO 8601. */
  readonly date: string
  readonly subject: string
  readonly body: string
}

/** Properties of the JSON Schema of a commit. */
export const COMMIT = {
  commit: TEXT,
  parents: listOf(TEXT),
  author: TEXT,
  email: TEXT,
  date: { type: 'string', description: 'ISO 8601' },
  subject: TEXT,
  body: TEXT,
} as const
const COMMITS = { type: 'array', items: objectOf(COMMIT), description: 'the newest first' } as const

/** Fields with a zero between: no field can hold one. */
export const FORMAT = '--format=tformat:%H%x00%P%x00%an%x00%ae%x00%aI%x00%s%x00%b%x00'
const FIELDS = 7
/** Characters of a message that are shown. */
const BODY = 4000

/** Reads what `git log -z` writes in that format; a commit that was cut off at the end is left out. */
export function parseCommits(text: string): Commit[] {
  const fields = text.split('\0')
  const commits: Commit[] = []
  // With -z each commit ends with a zero more.
  for (let at = 0; at + FIELDS < fields.length; at += FIELDS + 1) {
    const [commit, parents, author, email, date, subject, body] = fields.slice(at, at + FIELDS) as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ]
    const cut = body.length > BODY ? `${body.slice(0, BODY).toWellFormed()}…` : body.trimEnd()
    commits.push({ commit, parents: parents.split(' ').filter(Boolean), author, email, date, subject, body: cut })
  }
  return commits
}

/** A commit as text. */
export const shownCommit = ({ commit, author, email, date, subject, body }: Commit): string[] => [
  `commit ${commit}`,
  `Author: ${author} <${email}>`,
  `Date: ${date}`,
  '',
  `    ${subject}`,
  ...(body === '' ? [] : ['', ...body.split('\n').map(line => `    ${line}`)]),
  '',
]
