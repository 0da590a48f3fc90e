import { objectOf } from '@svc/plugin-kit'
import { listOf, TEXT } from './shapes.ts'

/** A commit, as it is told. */
export interface Commit {
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
export const COMMITS = { type: 'array', items: objectOf(COMMIT), description: 'the newest first' } as const

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
