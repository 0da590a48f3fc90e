import type { Manifest } from '@svc/core'

/** Where a plugin's code runs: behind a wall of its own, in the host, in the JavaScript sandbox; or it has none that runs, and the plugin of its runtime reads it (a vertical). */
export type IsolationMode = 'process' | 'in-process' | 'quickjs' | 'data'

export type Permissions = NonNullable<Manifest['permissions']>

/** Where a plugin came from. `spec` is what the person wrote, a folder or file as an absolute path; it never holds credentials. */
export interface Origin {
  readonly kind: 'registry' | 'folder' | 'tarball' | 'link'
  readonly spec: string
}

/** One installed plugin, as the lock has it. */
export interface LockedPlugin {
  readonly name: string
  readonly version: string
  readonly origin: Origin
  /** `sha512-…` of its tarball; '' for a link. */
  readonly integrity: string
  /** SHA-256, in hex, over path and content of each of its own files; '' for a link. */
  readonly files: string
  readonly isolation: IsolationMode
  readonly enabled: boolean
  /** What the person accepted: this is in force, whatever its manifest says later. */
  readonly permissions: Permissions
  /** Its install scripts were allowed. */
  readonly scripts: boolean
  /** `--trust` was given. */
  readonly trusted: boolean
  /** What its module declares, learnt once in the sandbox at install; holds as long as `files` does. */
  readonly declares?: unknown
  /** What help and completion show of its commands, learnt once at install in a process of its own; holds as long as `files` does. */
  readonly commands?: unknown
}

/** What is installed: `svc-plugins.lock`. */
export interface Lock {
  readonly version: 1
  /** The set in force, a folder's name; '' where nothing that is installed needs one (nothing at all, or links only). */
  readonly set: string
  /** The set that was in force before: old workers may still read it, so it is kept. */
  readonly former?: string
  /** Sorted by name. */
  readonly plugins: readonly LockedPlugin[]
  readonly dependencies: {
    /** SHA-256, in hex, over path and content of everything in node_modules that is no plugin's own file. */
    readonly files: string
    /** The same over path, size and times: while it holds, the content is not read. */
    readonly stamp: string
  }
}
