/** What a worker may do: functions by name, plain data in and out. */
export type Functions = Readonly<Record<string, (input: never) => unknown>>

/** What the host asks of a worker; one thing at a time. */
export interface Job {
  readonly name: string
  readonly input: unknown
  /** Milliseconds after which it ends itself, should nobody be there any more to stop it. */
  readonly lastMs: number
}

/** What went wrong in a worker, as plain data. */
export interface Failure {
  readonly code: string
  readonly message: string
  readonly details?: Record<string, unknown>
  readonly hint?: string
}

export type FromWorker = { readonly ready: true } | { readonly value: unknown } | { readonly failure: Failure }
