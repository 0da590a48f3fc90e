import { resolve } from 'node:path'
import process from 'node:process'
import { svcHome } from '@svc/core/config'
import type { Lock } from '@svc/plugin-manager/installed'

/** The facts that a command knows before it reads the configuration. */
export interface CommandPlace {
  readonly home: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** The lock to use instead of the installed one. */
  readonly installed?: Lock
  /** Read no file except the one that the user named. */
  readonly onlyNamed?: boolean
}

/** The location of this process. */
export const here = (): CommandPlace => ({ home: svcHome(), cwd: process.cwd(), env: process.env })

/** The folder of the lock and the installed plugins: the svc home, or the build (`SVC_PLUGINS`). */
export const setHome = ({ home, env }: Pick<CommandPlace, 'home' | 'env'> = here()): string =>
  env.SVC_PLUGINS ? resolve(env.SVC_PLUGINS) : home

/** The variable with the configuration file of a server. It has not the form SVC_A__B, so it is not configuration. */
export const SERVED_FILE = 'SVC_SERVED_FILE'

/** The configuration file of the server, in a worker of one that was started with a file. */
export const servedFile = (): string | undefined => process.env[SERVED_FILE]
