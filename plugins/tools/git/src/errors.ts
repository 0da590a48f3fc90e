import { type SvcError, svcError } from '@svc/core'

export const gitMissing = (): SvcError =>
  svcError('GIT_MISSING', 'git is not installed on this machine, or not in PATH', { hint: 'install git, and start svc again' })
export const gitTimeout = (ms: number): SvcError => svcError('GIT_TIMEOUT', `git took longer than ${ms} ms and was ended`)
export const noRepository = (path: string): SvcError =>
  svcError('GIT_NO_REPOSITORY', `"${path}" lies in no git repository of the folders that tools may use`, { details: { path } })
export const outsideRepository = (path: string): SvcError =>
  svcError('PATH_OUTSIDE', `"${path}" lies outside the repository`, { details: { path } })
export const leadsOut = (what: string): SvcError =>
  svcError('GIT_OUTSIDE', `the repository is not used: its ${what} lies outside the folders that tools may use`)
export const refUnknown = (ref: string): SvcError =>
  svcError('GIT_UNKNOWN_REVISION', `there is no commit "${ref.slice(0, 200)}" in this repository; git_log shows those there are`)
export const refInvalid = (ref: string): SvcError =>
  svcError('GIT_UNKNOWN_REVISION', `"${ref.slice(0, 200)}" is no name of a commit: write a branch, a tag, a hash, HEAD or HEAD~1`)
export const noFile = (path: string, ref: string): SvcError =>
  svcError('PATH_MISSING', `there is no file "${path}" at ${ref.slice(0, 200)}`, { details: { path } })
export const isBinary = (path: string): SvcError => svcError('FILE_BINARY', `"${path}" is a binary file: only text can be shown`)
export const hasFilters = (): SvcError =>
  svcError(
    'GIT_FILTERS',
    'this repository has filters of its own, which are not run: the commit would hold other content than they make',
    {
      hint: 'set tools.git.trust_repositories to true if what the repository brings may run',
    }
  )
export const nothingToCommit = (): SvcError =>
  svcError(
    'GIT_NOTHING',
    'there is nothing to commit: name the changed files in paths, or set all to true; git_status shows them'
  )
export const noMessage = (): SvcError => svcError('GIT_NO_MESSAGE', 'the message is empty')
export const tooManyChanges = (): SvcError =>
  svcError('GIT_TOO_MANY', 'there are more changed files than one commit stages here: name some of them in paths')

interface Word {
  readonly says: RegExp
  readonly code: string
  readonly words: string
  readonly hint?: string
}

const WORDS: readonly Word[] = [
  {
    says: /dubious ownership/,
    code: 'GIT_UNSAFE',
    words: 'the repository belongs to somebody else: git does not use it',
    hint: 'tell git that you trust it: git config --global --add safe.directory <its folder>',
  },
  { says: /must be run in a work tree/, code: 'GIT_BARE', words: 'the repository has no working tree' },
  {
    says: /index\.lock|another git process/i,
    code: 'GIT_BUSY',
    words: 'another git command is at work in this repository: try again',
    hint: 'if none is, take away index.lock in its .git folder',
  },
  {
    says: /tell me who you are|empty ident|auto-detect email|user\.useConfigOnly/,
    code: 'GIT_NO_IDENTITY',
    words: 'git does not know who commits',
    hint: 'set tools.git.author, or git config --global user.name and user.email',
  },
  {
    says: /did not match any file/,
    code: 'PATH_MISSING',
    words: 'one of the paths is neither a file nor known to git, or is ignored',
  },
  { says: /partial commit during a/, code: 'GIT_MERGING', words: 'a merge is under way: commit it without paths' },
  {
    says: /unmerged|unresolved conflict/i,
    code: 'GIT_MERGING',
    words: 'there are conflicts: fix the files first, then name them in paths',
  },
  { says: /is outside repository/, code: 'PATH_OUTSIDE', words: 'one of the paths lies outside the repository' },
  { says: /beyond a symbolic link/, code: 'PATH_OUTSIDE', words: 'one of the paths leads through a link' },
]

const SHOWN = 300

/** What git said, in our words: no path of this machine in it. */
export function gitFailed(stderr: string): SvcError {
  const known = WORDS.find(one => one.says.test(stderr))
  if (known) return svcError(known.code, known.words, known.hint === undefined ? {} : { hint: known.hint })
  const line = stderr.split('\n').find(one => /^(fatal|error):/.test(one)) ?? stderr.split('\n')[0] ?? ''
  const words = withoutPaths(line.replace(/^(fatal|error):\s*/, ''))
  return svcError('GIT_FAILED', `git refused: ${words.slice(0, SHOWN) || 'it did not say why'}`)
}

/** Where a path from the root of the machine begins. Folders may hold blanks, quotes and colons: no more of the line is told, but for a reason at its end. */
const PATH = /(?<![\p{L}\p{N}\p{M}_.\-/])\/.*$/u
const REASON = /['"`](?:: [A-Z][a-z ]+)?$/
const withoutPaths = (words: string) => words.replace(PATH, path => `…${REASON.exec(path)?.[0] ?? ''}`)
