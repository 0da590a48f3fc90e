import type { Tool } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { type GitContext, inRepository } from './repository.ts'
import { FLAG, listOf, parameters, paths, ref, TEXT } from './shapes.ts'

/** Arguments as the schema allows them. */
interface Arguments {
  readonly repository?: string
  readonly from?: string
  readonly paths?: readonly string[]
  readonly limit?: number
  readonly skip?: number
}

const LIMIT = 20
const MOST = 4_194_304

/** Creates `git_log`, which lists the ancestors of a commit. */
export function createGitLog(gitContext: GitContext): Tool {
  return toolOf<Arguments>({
    description: `Lists the commits of a git repository, newest first. ${gitContext.roots.words}`,
    category: 'git',
    effects: ['read'],
    workplace: true,
    parameters: parameters({
      from: ref('first commit: a branch, a tag, a hash; default HEAD'),
      paths: paths('only commits that change these files or folders'),
      limit: { type: 'integer', minimum: 1, maximum: 200, description: `maximum number of commits; default ${LIMIT}` },
      skip: { type: 'integer', minimum: 0, maximum: 1_000_000, description: 'number of commits to skip; default 0' },
    }),
    result: objectOf({ repository: TEXT, commits: COMMITS, truncated: FLAG }),
    async call({ repository: path, from, paths: only = [], limit = LIMIT, skip = 0 }, ctx) {
      return inRepository(gitContext, path, ctx, async repository => {
        const start = from === undefined ? await repository.head() : await repository.commit(from)
        if (start === undefined)
          return answerOf(['The repository has no commits.'], { repository: repository.shown, commits: [], truncated: false })
        // read another commit to find out whether there are more
        const options = ['-z', FORMAT, '--no-mailmap', '--no-show-signature', `--max-count=${limit + 1}`, `--skip=${skip}`]
        const { stdout, truncated } = await repository.run(['log', ...options, start, '--', ...(await repository.paths(only))], {
          most: MOST,
        })
        const all = parseCommits(stdout.toString())
        const commits = all.slice(0, limit)
        const more = truncated || all.length > limit
        const note = more ? [`[More commits exist; continue with skip ${skip + commits.length}.]`] : []
        const lines = commits.length === 0 ? ['No commit matches.'] : commits.map(lineOf)
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

/** A reported commit. */
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

/** Properties of a commit, for JSON Schemas. */
export const COMMIT = {
  commit: TEXT,
  parents: listOf(TEXT),
  author: TEXT,
  email: TEXT,
  date: { type: 'string', description: 'ISO 8601' },
  subject: TEXT,
  body: TEXT,
} as const
const COMMITS = { type: 'array', items: objectOf(COMMIT), description: 'newest first' } as const

/** Fields are separated by zero bytes, which no field contains. */
export const FORMAT = '--format=tformat:%H%x00%P%x00%an%x00%ae%x00%aI%x00%s%x00%b%x00'
const FIELDS = 7
/** Maximum length of a displayed message. */
const BODY = 4000

/** Parses the output of `git log -z` in that format. Skips a truncated commit at the end. */
export function parseCommits(text: string): Commit[] {
  const fields = text.split('\0')
  const commits: Commit[] = []
  // with -z, each commit ends with another zero byte
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

/** Formats a commit. */
export const shownCommit = ({ commit, author, email, date, subject, body }: Commit): string[] => [
  `commit ${commit}`,
  `Author: ${author} <${email}>`,
  `Date: ${date}`,
  '',
  `    ${subject}`,
  ...(body === '' ? [] : ['', ...body.split('\n').map(line => `    ${line}`)]),
  '',
]
