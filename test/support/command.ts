import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { COMPILED, SVC } from './entry.ts'
import { mayShare, runShared } from './shared-process.ts'

export interface CommandOptions {
  readonly home: string
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Its standard input. */
  readonly input?: string
  /** It may run in the process that others have run in: not where code of plugins changes, which a process reads once. */
  readonly share?: true
}

/** Runs a command of `svc` to its end. */
export async function runSvc(args: readonly string[], { home, cwd = home, env = {}, input, share }: CommandOptions) {
  const command = { args, cwd, env: { PATH: process.env.PATH, ...COMPILED, ...env, SVC_HOME: home } }
  if (share && input === undefined && mayShare(command)) return toPublicError(await runShared(command))
  const child = spawn(process.execPath, [...SVC, ...args], {
    ...command,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.end(input)
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return toPublicError({ code: code as number | null, out, err })
}

const toPublicError = ({ code, out, err }: { readonly code: number | null; readonly out: string; readonly err: string }) => ({
  code,
  out,
  err,
})
