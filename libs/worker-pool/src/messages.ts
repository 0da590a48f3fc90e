/** The tasks of a worker: functions by name, with plain data in and out. */
export type Functions = Readonly<Record<string, (input: never) => unknown>>

/** A task that the host sends to a worker, one at a time. */
export interface PoolTask {
  readonly name: string
  readonly input: unknown
  /** Milliseconds after which the worker ends itself, if its host no longer exists. */
  readonly lastMs: number
}

/** The failure of a task, as plain data. */
export interface Failure {
  readonly code: string
  readonly message: string
  readonly details?: Record<string, unknown>
  readonly hint?: string
}

export type FromWorker = { readonly ready: true } | { readonly value: unknown } | { readonly failure: Failure }
