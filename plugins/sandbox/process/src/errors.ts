import { type SvcError, svcError } from '@svc/core'

const DOCTOR = 'run "svc doctor": it shows what this machine can hold, and what would fix it'

/** What is asked cannot be held here. `why` is for a person: it may name the machine's parts, no path of its users. */
export const unavailable = (why: string): SvcError =>
  svcError('SANDBOX_UNAVAILABLE', `the process sandbox refuses: ${why}`, { details: { reason: why }, hint: DOCTOR })

/** A path that may not be shown to what runs in the sandbox. */
export const pathRefused = (path: string, why: string, hint: string): SvcError =>
  svcError('SANDBOX_PATH', `the sandbox does not show "${path}": ${why}`, { details: { path }, hint })

export const showsHome = (path: string): SvcError =>
  pathRefused(
    path,
    'the svc home would be seen with it, where keys and conversations lie',
    'name a folder apart from the svc home'
  )

export const leadsOut = (path: string): SvcError =>
  pathRefused(path, 'a link on its way leads out of the folders that may be shown', 'name the folder itself')

/** A folder that may not be written because it is, or lies in, a protected path. */
export const ofProtected = (path: string, owner: string): SvcError =>
  pathRefused(path, `it belongs to ${owner}, which programs in a sandbox must not change`, 'allow another folder for writing')

/** A program that runs for long would need an empty folder on this machine in the place of what is missing, or a mount over a file that a person replaces. */
export const ofMissing = (path: string, owner: string): SvcError =>
  pathRefused(
    path,
    `svc would take what a program puts there for a part of ${owner}, and for a program that runs for long this cannot be prevented`,
    'allow a folder below it for writing'
  )

/** What is not found is not protected. */
export const ofTooMany = (path: string, what: string): SvcError =>
  pathRefused(
    path,
    `it has ${what} in the three levels that are looked through for what must be protected`,
    'allow a smaller folder for writing'
  )

/** With another link in its place the protected path would mean something else, and a link cannot be mounted over. */
export const linkOfProtected = (path: string, owner: string): SvcError =>
  pathRefused(
    path,
    `it is a link in a writable folder and leads to what belongs to ${owner}`,
    'put the folder itself there, or allow a folder for writing that does not hold the link'
  )

export const noCommand = (command: string): SvcError =>
  svcError('SANDBOX_COMMAND', `there is no program "${command}" to be run`, {
    details: { command },
    hint: 'install it, or write its whole path; a bare name is looked up in PATH',
  })
