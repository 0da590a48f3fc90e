import type { LimitHolder, Released } from '@svc/core/contracts'

export type Kind = 'memory' | 'pids'
/** Limits in bytes and processes. */
export type Limits = Readonly<Partial<Record<Kind, number>>>

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
export interface Holder {
  readonly name: LimitHolder
  readonly kinds: readonly Kind[]
  hold(limits: Limits, program: { readonly isNode: () => Promise<boolean> }): Promise<Hold>
}

export const NOTHING: Released = { outOfMemory: false, outOfPids: false }

/** Combines two holds: the second is nested in the first. */
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
