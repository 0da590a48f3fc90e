import type { LimitHolder, Released } from '@svc/core/contracts'

export type Kind = 'memory' | 'pids'
/** Limits in bytes and processes. */
export type Limits = Readonly<Partial<Record<Kind, number>>>

/** What holds the limits of one process. */
export interface Hold {
  /** Words before the command line of bubblewrap. */
  readonly before: readonly string[]
  /** Words before the program, inside. */
  readonly within: readonly string[]
  /** Variables that `before` needs, and that are taken away inside. */
  readonly env: Readonly<Record<string, string>>
  /** Ends what still runs and removes what was made. */
  release(): Promise<Released>
}

/** A way in which this machine holds limits of some kinds. */
export interface Holder {
  readonly name: LimitHolder
  readonly kinds: readonly Kind[]
  hold(limits: Limits, program: { readonly isNode: () => Promise<boolean> }): Promise<Hold>
}

export const NOTHING: Released = { outOfMemory: false, outOfPids: false }

/** Two holds as one: the second stands within the first. */
export const both = (one: Hold, other: Hold): Hold => ({
  before: [...one.before, ...other.before],
  within: [...one.within, ...other.within],
  env: { ...one.env, ...other.env },
  async release() {
    const [first, second] = await Promise.all([one.release(), other.release()])
    return { outOfMemory: first.outOfMemory || second.outOfMemory, outOfPids: first.outOfPids || second.outOfPids }
  },
})

export const FREE: Hold = { before: [], within: [], env: {}, release: async () => NOTHING }
