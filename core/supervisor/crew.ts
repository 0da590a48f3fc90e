import type { SvcError } from '../src/errors.ts'
import type { BlamedEvent } from './blame.ts'
import type { Patience } from './deaths.ts'
import type { WaitLimits } from './connections.ts'
import type { HireOptions, WorkerInfo } from './member.ts'

/** What the supervisor takes from a generation's first report: it reads no configuration itself. */
export interface SupervisorSettings {
  /** How many workers run. Default 1. */
  readonly count?: number
  /** Milliseconds that draining workers have when the server ends, before they are killed. Default 30,000. */
  readonly drainLimitMs?: number
  /** Milliseconds that requests have to end in workers that were replaced; they are killed somewhat later. Default 30,000. */
  readonly swapLimitMs?: number
  /** Milliseconds without a sign of life after which a worker is killed. Default 10,000. */
  readonly hangLimitMs?: number
  /** More environment for the workers that come later. */
  readonly env?: NodeJS.ProcessEnv
  /** Plain data for the workers that come later in this generation, so that they are like their first whatever has happened to the disk meanwhile. */
  readonly legacy?: unknown
}

export interface SupervisorOptions<R> extends HireOptions, WaitLimits {
  /** Milliseconds that the first of the next generation must live before anybody leaves for it: what a plugin begins in its setup may end it right after. Default 1,000. */
  readonly proofMs?: number
  /** A folder of the user's own, in which workers leave the trace of what they handled when they ended: without it no plugin is blamed for that. */
  readonly traceFolder?: string
  /** With workers that die. */
  readonly patience?: Patience
  settings?(report: R): SupervisorSettings
  onEvent?(event: SupervisorEvent<R>): void
}

export type SupervisorEvent<R> =
  | { readonly event: 'ready'; readonly worker: WorkerInfo; readonly report: R }
  | { readonly event: 'failed'; readonly worker: WorkerInfo; readonly problems: readonly SvcError[] }
  | { readonly event: 'exited'; readonly worker: WorkerInfo; readonly how: string }
  | { readonly event: 'hung'; readonly worker: WorkerInfo; readonly limitMs: number }
  | BlamedEvent
  | { readonly event: 'replacing'; readonly delayMs: number }
  /** Connections were closed because no worker took them in time, or too many waited. At most once a second. */
  | { readonly event: 'unserved'; readonly count: number }
  /** Workers die in a row, and others serve: it goes on trying. */
  | { readonly event: 'looping'; readonly deaths: number; readonly how: string; readonly delayMs: number }

/** `starting` → `running` or `failed`; `running` → `failed` by a crash loop; each → `stopping` → `stopped`. A running host never changes: new code means new workers. */
export type SupervisorState<R> =
  | { readonly state: 'starting' }
  | { readonly state: 'running'; readonly report: R; readonly settings: SupervisorSettings }
  | { readonly state: 'failed'; readonly problems: readonly SvcError[] }
  | { readonly state: 'stopping' }
  | { readonly state: 'stopped' }

/** What a reload has done. */
export interface Reloaded<R> {
  readonly report: R
  /** Those that serve now, and those that end what they had begun. */
  readonly workers: readonly WorkerInfo[]
}

export interface Supervisor<R> extends AsyncDisposable {
  readonly state: SupervisorState<R>
  readonly workers: readonly WorkerInfo[]
  /** Settles when it gave up: with the crash loop's error. */
  readonly gaveUp: Promise<SvcError>
  /** Brings up the first worker and, by its settings, the others; answers with its report. Throws START_FAILED with its problems. */
  start(): Promise<R>
  /**
   * Brings up the next workers from what is on disk now; when they are ready, lets the old ones drain. Throws START_FAILED with all problems: then the old
   * ones serve on. One after the other; waits while two generations drain.
   */
  reload(): Promise<Reloaded<R>>
  /**
   * Lets all workers drain, does the work while there is none (connections are refused meanwhile), and brings up the next ones from what is on disk then.
   * Throws START_FAILED when they cannot start: it has given up then.
   */
  pause(work: () => Promise<void>): Promise<Reloaded<R>>
  /** Lets the workers drain, kills them at the limit or at the second call; resolves when the last has gone. */
  stop(): Promise<void>
}
