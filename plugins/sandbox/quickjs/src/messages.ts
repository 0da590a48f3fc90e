// What the service and its threads say to each other: plain data, texts of JSON.

/** What a guest may ask of the service. */
export type AskName = 'fetch' | 'read' | 'write' | 'list'

/** One run of code. */
export interface Job {
  /** No two tenants ever share an engine. */
  readonly tenant: string
  readonly memoryBytes: number
  readonly timeoutMs: number
  readonly code: string
  /** A script; or a module of which all contributions are looked at, or one is called: `[slot, name, method]`. */
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

/** What went wrong in a guest, as it is told. */
export interface GuestFailure {
  readonly kind: 'timeout' | 'memory' | 'blocked' | 'failed'
  readonly message: string
}

export type Outcome = { readonly lines: readonly GuestLine[] } & (
  | { readonly json: string; readonly failure?: undefined }
  | { readonly failure: GuestFailure }
)

export type ToThread =
  | { readonly job: Job }
  | { readonly answer: number; readonly json: string }
  | { readonly answer: number; readonly error: string }

export type FromThread =
  | { readonly ready: true }
  | { readonly ask: number; readonly name: AskName; readonly json: string }
  /** `tenants`: for whom it keeps an engine. */
  | { readonly done: Outcome; readonly tenants: readonly string[] }

/** What a thread is started with. */
export interface ThreadData {
  readonly engine: WebAssembly.Module
  /** The memory of engines that are made before somebody asks. */
  readonly spareBytes: number
}

/** The most characters of a value, an input, a file or a page on their way in or out. */
export const MOST_CHARACTERS = 1_048_576
