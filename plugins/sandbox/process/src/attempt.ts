import { codeOf, messageOf } from '@svc/core'
import { runChild } from '@svc/worker-pool/processes'

/** The result of a trial run. */
export interface Attempt {
  readonly worked: boolean
  readonly out: string
  /** Why it failed, in the words of the program. */
  readonly why: string
  /** True if the program does not exist. */
  readonly isMissing: boolean
}

const LIMIT_MS = 5_000
/** A trial ends with all processes that it starts. */
const LIMITS = { contained: true, timeoutMs: LIMIT_MS, most: 8192, floodBytes: 1_048_576, graceMs: 100 } as const

/** Runs a program to find out whether it works on this machine. The program gets none of the host's variables. */
export async function attempt(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = { PATH: '/usr/bin:/bin' }
): Promise<Attempt> {
  try {
    const { code, stdout, stderr, stopped } = await runChild({ file, args, env, ...LIMITS })
    const why = stderr.text.trim() || (stopped ? `it did not end within ${LIMIT_MS} ms` : `it ended with ${code}`)
    return { worked: code === 0, out: stdout.text.trim(), why, isMissing: false }
  } catch (error) {
    const { cause } = Object(error) as { cause?: unknown }
    return { worked: false, out: '', why: messageOf(error), isMissing: codeOf(cause) === 'ENOENT' }
  }
}
