// Messages between the service and its threads: plain data, values as JSON text.

/** The requests of a guest to the service. */
export type AskName = 'fetch' | 'read' | 'write' | 'list'

/** One run of code. */
export interface GuestTask {
  /** Tenants never share an engine. */
  readonly tenant: string
  readonly memoryBytes: number
  readonly timeoutMs: number
  readonly code: string
  /** A script; a module to describe; or a method of a module to call: `[slot, name, method]`. */
  readonly what: 'script' | 'describe' | readonly string[]
  /** JSON: the script's `input`, the call's arguments. */
  readonly input: string
  readonly fetch: boolean
  readonly files: boolean
}

export interface GuestLine {
  readonly level: string
  readonly text: string
}

/** The failure of a guest, as the caller sees it. */
export interface GuestFailure {
  readonly kind: 'timeout' | 'memory' | 'blocked' | 'failed'
  readonly message: string
}

export type GuestOutcome = { readonly lines: readonly GuestLine[] } & (
  | { readonly json: string; readonly failure?: undefined }
  | { readonly failure: GuestFailure }
)

export type ToThread =
  | { readonly job: GuestTask }
  | { readonly answer: number; readonly json: string }
  | { readonly answer: number; readonly error: string }

export type FromThread =
  | { readonly ready: true }
  | { readonly ask: number; readonly name: AskName; readonly json: string }
  /** `tenants`: those whose engines the thread keeps. */
  | { readonly done: GuestOutcome; readonly tenants: readonly string[] }

/** The data that a thread starts with. */
export interface ThreadData {
  readonly engine: WebAssembly.Module
  /** The memory of engines that are made in advance. */
  readonly spareBytes: number
}

/** Maximum characters of a value, an input, a file or a page that goes in or out. */
export const MOST_CHARACTERS = 1_048_576
