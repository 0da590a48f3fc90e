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

let served: string | undefined

/** Notes the configuration file that the server of this worker was started with. */
export function noteServedFile(file: string | undefined): void {
  served = file
}

/** The configuration file of the server, in a worker that was started with one. */
export const servedFile = (): string | undefined => served
