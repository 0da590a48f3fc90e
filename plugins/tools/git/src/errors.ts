import { type SvcError, svcError } from '@svc/core'

export const gitMissing = (): SvcError =>
  svcError('GIT_MISSING', 'git is not installed, or not in PATH', { hint: 'Install git and restart svc' })
export const gitTimeout = (ms: number): SvcError =>
  svcError('GIT_TIMEOUT', `git exceeded its time limit of ${ms} ms and was terminated`, {
    hint: 'Limit the call to fewer files or commits, or ask the operator to increase tools.git.timeout_ms',
  })
export const noRepository = (path: string): SvcError =>
  svcError('GIT_NO_REPOSITORY', `"${path}" is in no git repository that tools can use`, {
    details: { path },
  })
export const outsideRepository = (path: string): SvcError =>
  svcError('PATH_OUTSIDE', `"${path}" is outside the repository`, { details: { path } })
export const leadsOut = (what: string): SvcError =>
  svcError('GIT_OUTSIDE', `svc does not use this repository: its ${what} is outside the folders of the git tools`)
export const refUnknown = (ref: string): SvcError =>
  svcError('GIT_UNKNOWN_REVISION', `commit "${ref.slice(0, 200)}" does not exist in this repository; git_log lists commits`)
export const refInvalid = (ref: string): SvcError =>
  svcError(
    'GIT_UNKNOWN_REVISION',
    `"${ref.slice(0, 200)}" is not a valid commit name; use a branch, a tag, a hash, HEAD or HEAD~1`
  )
export const noFile = (path: string, ref: string): SvcError =>
  svcError('PATH_MISSING', `file "${path}" does not exist at ${ref.slice(0, 200)}`, { details: { path } })
export const isBinary = (path: string): SvcError => svcError('FILE_BINARY', `"${path}" is a binary file; only text can be shown`)
export const hasFilters = (): SvcError =>
  svcError(
    'GIT_FILTERS',
    'this repository defines filters, which svc does not run, so the commit would contain unfiltered content',
    {
      hint: 'Set tools.git.trust_repositories to true to run hooks and filters of repositories',
    }
  )
export const nothingToCommit = (): SvcError =>
  svcError(
    'GIT_NOTHING',
    'there is nothing to commit; list changed files in paths, or set all to true (git_status shows changes)'
  )
export const noMessage = (): SvcError => svcError('GIT_NO_MESSAGE', 'the message is empty')
export const tooManyChanges = (): SvcError =>
  svcError('GIT_TOO_MANY', 'too many files changed for a commit; list some of them in paths')

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
    words: 'the repository belongs to another user, so git refuses it',
    hint: 'To trust it, run git config --global --add safe.directory <folder>',
  },
  { says: /must be run in a work tree/, code: 'GIT_BARE', words: 'the repository has no working tree' },
  {
    says: /index\.lock|another git process/i,
    code: 'GIT_BUSY',
    words: 'another git command is running in this repository; try again',
    hint: 'If no git command is running, delete index.lock in the .git folder',
  },
  {
    says: /tell me who you are|empty ident|auto-detect email|user\.useConfigOnly/,
    code: 'GIT_NO_IDENTITY',
    words: 'git has no author for commits',
    hint: 'Set tools.git.author, or git config --global user.name and user.email',
  },
  {
    says: /did not match any file/,
    code: 'PATH_MISSING',
    words: 'a path does not exist, is not tracked, or is ignored',
  },
  { says: /partial commit during a/, code: 'GIT_MERGING', words: 'a merge is in progress; commit it without paths' },
  {
    says: /unmerged|unresolved conflict/i,
    code: 'GIT_MERGING',
    words: 'the merge has conflicts; fix the files, then list them in paths',
  },
  { says: /is outside repository/, code: 'PATH_OUTSIDE', words: 'a path is outside the repository' },
  { says: /beyond a symbolic link/, code: 'PATH_OUTSIDE', words: 'a path leads through a link' },
]

const SHOWN = 300

/** Converts an error message of git to an error without paths of this machine. */
export function gitFailed(stderr: string): SvcError {
  const known = WORDS.find(word => word.says.test(stderr))
  if (known) return svcError(known.code, known.words, known.hint === undefined ? {} : { hint: known.hint })
  const line = stderr.split('\n').find(item => /^(fatal|error):/.test(item)) ?? stderr.split('\n')[0] ?? ''
  const words = withoutPaths(line.replace(/^(fatal|error):\s*/, ''))
  return svcError('GIT_FAILED', `git failed: ${words.slice(0, SHOWN) || 'no reason given'}`)
}

/**
 * The start of an absolute path. Folder names can contain blanks, quotes and colons, so the rest of the line is removed, except
 * for a reason at its end.
 */
const PATH = /(?<![\p{L}\p{N}\p{M}_.\-/])\/.*$/u
const REASON = /['"`](?:: [A-Z][a-z ]+)?$/
const withoutPaths = (words: string) => words.replace(PATH, path => `…${REASON.exec(path)?.[0] ?? ''}`)
