import { codeOf, messageOf } from '@svc/core'
import type { LimitHolder, Released } from '@svc/core/contracts'
import { runChild } from '@svc/worker-pool/processes'

export type LimitKind = 'memory' | 'pids'
/** Limits in bytes and processes. */
export type LimitValues = Readonly<Partial<Record<LimitKind, number>>>

/** The enforced limits of one process. */
export interface Hold {
  /** Arguments before the command line of bubblewrap. */
  readonly before: readonly string[]
  /** Arguments before the program, inside the sandbox. */
  readonly within: readonly string[]
  /** Variables that `before` needs. The sandbox unsets them inside. */
  readonly env: Readonly<Record<string, string>>
  /** Ends the remaining processes and removes the groups. */
  release(): Promise<Released>
}

/** A mechanism of this machine that enforces limits of some kinds. */
export interface LimitMechanism {
  readonly name: LimitHolder
  readonly kinds: readonly LimitKind[]
  hold(limits: LimitValues, program: { readonly isNode: () => Promise<boolean> }): Promise<Hold>
}

export const NOTHING: Released = { outOfMemory: false, outOfPids: false }

/** Combines two holds: the second is nested in the first. */
export const both = (hold: Hold, other: Hold): Hold => ({
  before: [...hold.before, ...other.before],
  within: [...hold.within, ...other.within],
  env: { ...hold.env, ...other.env },
  async release() {
    const [first, second] = await Promise.all([hold.release(), other.release()])
    return { outOfMemory: first.outOfMemory || second.outOfMemory, outOfPids: first.outOfPids || second.outOfPids }
  },
})

export const FREE: Hold = { before: [], within: [], env: {}, release: async () => NOTHING }

/** The result of a trial run. */
export interface TrialResult {
  readonly worked: boolean
  readonly out: string
  /** Why it failed, in the words of the program. */
  readonly why: string
  /** True if the program does not exist. */
  readonly isMissing: boolean
}

const ATTEMPT_MS = 5_000
/** A trial ends with all processes that it starts. */
const ATTEMPT_LIMITS = { contained: true, timeoutMs: ATTEMPT_MS, most: 8192, floodBytes: 1_048_576, graceMs: 100 } as const

/** Runs a program to find out whether it works on this machine. The program gets none of the host's variables. */
export async function attempt(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = { PATH: '/usr/bin:/bin' }
): Promise<TrialResult> {
  try {
    const { code, stdout, stderr, stopped } = await runChild({ file, args, env, ...ATTEMPT_LIMITS })
    const why = stderr.text.trim() || (stopped ? `it did not end within ${ATTEMPT_MS} ms` : `it ended with ${code}`)
    return { worked: code === 0, out: stdout.text.trim(), why, isMissing: false }
  } catch (error) {
    const { cause } = Object(error) as { cause?: unknown }
    return { worked: false, out: '', why: messageOf(error), isMissing: codeOf(cause) === 'ENOENT' }
  }
}
