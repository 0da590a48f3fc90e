import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

/** The svc home, where a person's configuration, profiles and data lie: `SVC_HOME`, else `~/.svc`. */
export function svcHome(env: Readonly<Record<string, string | undefined>> = process.env): string {
  return env.SVC_HOME ? resolve(env.SVC_HOME) : join(homedir(), '.svc')
}
