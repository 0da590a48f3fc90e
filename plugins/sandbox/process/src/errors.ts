import { type SvcError, svcError } from '@svc/core'

const DOCTOR = 'Run "svc doctor": it shows what this machine supports, and how to fix the rest'

/** This machine cannot enforce the requested limits. `why` is for a person: it can name parts of the machine, but no path of a user. */
export const unavailable = (why: string): SvcError =>
  svcError('SANDBOX_UNAVAILABLE', `the process sandbox is not available: ${why}`, { details: { reason: why }, hint: DOCTOR })

/** A path that a process in the sandbox must not see. */
export const pathRefused = (path: string, why: string, hint: string): SvcError =>
  svcError('SANDBOX_PATH', `the sandbox does not show "${path}": ${why}`, { details: { path }, hint })

export const showsHome = (path: string): SvcError =>
  pathRefused(path, 'it would show the svc home, which holds keys and conversations', 'Use a folder outside the svc home')

export const leadsOut = (path: string): SvcError =>
  pathRefused(path, 'a link in it leads outside the folders that the sandbox may show', 'Use the path of the folder itself')

/** A folder that is, or is within, a protected path, and so must not be writable. */
export const ofProtected = (path: string, owner: string): SvcError =>
  pathRefused(path, `it belongs to ${owner}, which programs in a sandbox must not change`, 'Make another folder writable')

/** A long-running program would need an empty folder on this machine for the missing path, or a mount over a file that a person can replace. */
export const ofMissing = (path: string, owner: string): SvcError =>
  pathRefused(
    path,
    `a program could create a part of ${owner} there, and svc cannot prevent that for a long-running program`,
    'Make a folder below it writable'
  )

/** A folder with more entries than svc looks through: it could not protect all of them. */
export const ofTooMany = (path: string, what: string): SvcError =>
  pathRefused(path, `it has ${what} in the three levels that svc searches for protected paths`, 'Make a smaller folder writable')

/** A program could replace the link, which would move the protected path; and a link cannot be mounted over. */
export const linkOfProtected = (path: string, owner: string): SvcError =>
  pathRefused(
    path,
    `it is a link in a writable folder, and leads to a path of ${owner}`,
    'Replace the link by the folder, or make a folder writable that does not hold the link'
  )

export const noCommand = (command: string): SvcError =>
  svcError('SANDBOX_COMMAND', `the program "${command}" was not found`, {
    details: { command },
    hint: 'Install the program, or use its full path. svc looks up a bare name in PATH',
  })
