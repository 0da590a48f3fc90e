import type { Body, PublicError, Json, Question, RunStatus } from '@svc/core/contracts'

/** What a node has spent. */
export interface Spent {
  readonly calls: number
  readonly tokens: number
}

/** A child as the log has it. */
export interface ForkedChild {
  readonly key: string
  readonly body: string | Body | { readonly workflow: string; readonly input: Json; readonly parameters?: Json }
  readonly vars?: { readonly [name: string]: Json }
}

/** How children are waited for. */
export interface Fork {
  readonly children: readonly ForkedChild[]
  readonly join: 'all' | 'any' | 'first'
  readonly failFast?: boolean
  readonly width?: number
}

/**
 * What a run's log holds. `s` is a step, `f` the path of a frame (a graph that runs: `''`, `each/3/`), `at` Unix milliseconds. The log is the run: who takes
 * it over walks the graph again and takes from it what is done.
 */
export type Entry =
  | { readonly t: 'started'; readonly at: number }
  | { readonly t: 'resumed'; readonly at: number }
  | {
      readonly t: 'begun'
      readonly s: string
      readonly at: number
      readonly n: number
      readonly type: string
      readonly input: Json
    }
  /** The node is called once more, after its children or a wait. */
  | { readonly t: 'called'; readonly s: string; readonly at: number }
  | {
      readonly t: 'asleep'
      readonly s: string
      readonly at: number
      readonly until?: number
      readonly event?: string
      readonly ask?: Question
      readonly state?: Json
    }
  /** `event`: the one that was kept until then. */
  | {
      readonly t: 'woken'
      readonly s: string
      readonly at: number
      readonly by: 'time' | 'event' | 'answer'
      readonly data?: Json
      readonly event?: string
    }
  | ({ readonly t: 'forked'; readonly s: string; readonly at: number; readonly state?: Json } & Fork)
  /** A try has failed and is made again at `due`. */
  | {
      readonly t: 'again'
      readonly s: string
      readonly at: number
      readonly due: number
      readonly error: PublicError
      readonly spent?: Spent
    }
  | {
      readonly t: 'done'
      readonly s: string
      readonly at: number
      readonly out: Json
      readonly branch?: string
      readonly spent?: Spent
    }
  /** `caught`: its graph says what follows. */
  | {
      readonly t: 'failed'
      readonly s: string
      readonly at: number
      readonly error: PublicError
      readonly spent?: Spent
      readonly caught?: true
    }
  /** A child has ended. */
  | { readonly t: 'ended'; readonly f: string; readonly at: number; readonly out: Json }
  | { readonly t: 'broken'; readonly f: string; readonly at: number; readonly error: PublicError }
  | { readonly t: 'dropped'; readonly f: string; readonly at: number }
  /** An event that nobody waited for when it came. */
  | { readonly t: 'event'; readonly at: number; readonly id: string; readonly name: string; readonly data: Json }
  /** The run has failed, and what was done is undone. */
  | { readonly t: 'undoing'; readonly at: number; readonly error: PublicError }
  | { readonly t: 'over'; readonly at: number; readonly status: RunStatus; readonly result?: Json; readonly error?: PublicError }

export type EntryOf<T extends Entry['t']> = Extract<Entry, { readonly t: T }>
