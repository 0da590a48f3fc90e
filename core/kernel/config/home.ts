import { homedir, userInfo } from 'node:os'
import { join, relative, resolve, sep } from 'node:path'

/** The svc home with the user's configuration, profiles and data: `SVC_HOME`, else `~/.svc`. */
export function svcHome(env: Readonly<Record<string, string | undefined>> = process.env): string {
  return env.SVC_HOME ? resolve(env.SVC_HOME) : join(userHome(), '.svc')
}

/** With an empty `HOME`, the home folder that the system lists for the user. */
export const userHome = (): string => homedir() || userInfo().homedir

const isBelow = (file: string, folder: string) => file.startsWith(folder + sep)

/** Formats a path for people, unambiguously: `~/.svc/…` in the svc home, else relative to the current folder. */
export function shownPath(file: string, cwd: string = process.cwd(), home: string = svcHome()): string {
  if (isBelow(file, cwd) || !isBelow(file, home)) return relative(cwd, file) || '.'
  return isBelow(file, userHome()) ? join('~', relative(userHome(), file)) : file
}
