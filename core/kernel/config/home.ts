import { homedir, userInfo } from 'node:os'
import { join, relative, resolve, sep } from 'node:path'

/** The svc home, where a person's configuration, profiles and data lie: `SVC_HOME`, else `~/.svc`. */
export function svcHome(env: Readonly<Record<string, string | undefined>> = process.env): string {
  return env.SVC_HOME ? resolve(env.SVC_HOME) : join(userHome(), '.svc')
}

/** An empty `HOME` is none: the folder that the system has for the user. */
export const userHome = (): string => homedir() || userInfo().homedir

const isBelow = (file: string, folder: string) => file.startsWith(folder + sep)

/** A file as a person finds it, never to be taken for another of the same name: `~/.svc/…` in the svc home, else its path from the current folder. */
export function shownPath(file: string, cwd: string = process.cwd(), home: string = svcHome()): string {
  if (isBelow(file, cwd) || !isBelow(file, home)) return relative(cwd, file)
  return isBelow(file, userHome()) ? join('~', relative(userHome(), file)) : file
}
