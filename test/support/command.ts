import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { SVC } from './entry.ts'

export interface CommandOptions {
  readonly home: string
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Runs a command of `svc` to its end. */
export async function runSvc(args: readonly string[], { home, cwd = home, env = {} }: CommandOptions) {
  const child = spawn(process.execPath, [...SVC, ...args], {
    cwd,
    env: { PATH: process.env.PATH, ...env, SVC_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code: code as number | null, out, err }
}
