import { codeOf, messageOf } from '@svc/core'
import { runChild } from '@svc/worker-pool/processes'

/** How a trial ended. */
export interface Attempt {
  readonly worked: boolean
  readonly out: string
  /** In its own words why it did not. */
  readonly why: string
  /** True where there is no such program. */
  readonly isMissing: boolean
}

const LIMIT_MS = 5_000
/** Each trial ends with all that it starts. */
const LIMITS = { contained: true, timeoutMs: LIMIT_MS, most: 8192, floodBytes: 1_048_576, graceMs: 100 } as const

/** Does something on this machine to see whether it works. Nothing of the host's variables is handed on. */
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
