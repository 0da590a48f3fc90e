import type { Manifest } from '@svc/core'
import type { Lock, LockedPlugin, Origin, Permissions } from './lock.ts'

/** What shall change: any of these, together. Each becomes in force with all others, or none. */
export interface ChangeRequest {
  /** `spec`: `name`, `name@range`, a folder, or a tarball's file. `scripts`: its install scripts may run (its own, none of its dependencies). */
  readonly install?: readonly { readonly spec: string; readonly scripts?: boolean }[]
  /** Folders that are used where they lie. */
  readonly link?: readonly string[]
  /** Names. */
  readonly uninstall?: readonly string[]
  /** Names, or all: each is asked for again as it was installed (`name@range` → the newest in that range; a folder or tarball is read again; a link is left alone). Allowed install scripts stay allowed. */
  readonly update?: readonly string[] | 'all'
  /** Only what npm has in its cache. */
  readonly offline?: boolean
}

/** One step, reported when it begins. Steps come in this order, those that are needed; `fetch`, `inspect` and `scripts` come once a plugin. */
export interface Progress {
  readonly step: 'fetch' | 'inspect' | 'resolve' | 'copy' | 'install' | 'scripts' | 'unpack' | 'hash' | 'pack' | 'commit'
  /** What is fetched, looked at, or whose scripts run: a name, or the end of a path. */
  readonly plugin?: string
}

export interface SetOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: Progress) => void
  /** The npm to run, a file; without it the one that runs this process (`npm_execpath`), else `npm` from PATH. */
  readonly npm?: string
  /** Milliseconds that one run of npm may take; default 300,000. */
  readonly limitMs?: number
}

export interface PermissionChange {
  /** What it did not have: `network api.example.com`, `env KEY`, `read /path`, `write /path`, `services store`, `hooks chat.turn`. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
}

/** A plugin as it would be after the change. None of its code has run. */
export interface Candidate {
  readonly name: string
  /** Its version now; undefined where it is not installed. */
  readonly from?: string
  /** Its version then. */
  readonly version: string
  readonly origin: Origin
  readonly manifest: Manifest
  /** `description` of its package.json; '' where it has none. */
  readonly description: string
  readonly permissions: Permissions
  /** Against what was accepted when it was installed; against nothing where it is new. */
  readonly permissionChange: PermissionChange
  /** Names of its own install scripts (`preinstall`, `install`, `postinstall`; `binding.gyp` where npm would build). */
  readonly installScripts: readonly string[]
  /** `name@version` of the dependencies that have install scripts: these never run. */
  readonly dependencyScripts: readonly string[]
  /** Whether its own may run. */
  readonly scripts: boolean
  /** Packages that come with it, those of its dependencies included; one that two plugins share counts with both. */
  readonly dependencies: number
  /** What the registry tells; undefined for a folder, tarball or link, and where it could not be asked. */
  readonly registry?: {
    /** How many keys of the registry signed it, as the registry reports it, unchecked. */
    readonly signatures: number
    /** The kind of its provenance statement, a URL, where it has one, as the registry reports it, unchecked. */
    readonly provenance?: string
  }
  /** `sha512-…` of its tarball; '' for a link. */
  readonly integrity: string
  /** Bytes of its own files, unpacked; 0 for a link. */
  readonly bytes: number
  /** It is installed already, the very same bytes: nothing would change. */
  readonly same: boolean
}

/** What `build` made. */
export interface BuiltSet {
  /** Where its plugins are found: the new set's folder. '' where links are all that is left. */
  readonly folder: string
  /**
   * One for each candidate, ready to be given to `commit`: what was chosen before stays (isolation, enabled, trusted); a new one is enabled, not trusted, and runs in `process`,
   * or as its manifest's `runtime` says: in `quickjs`, or `data`. `permissions` are the candidate's: to hand it back is to accept them.
   */
  readonly plugins: readonly LockedPlugin[]
}

/**
 * A change that is prepared beside the set in force: `planChange` → show `candidates` and ask → `build()` → `commit(…)`.
 * No other change can begin until it is disposed of; disposed of before `commit`, it leaves nothing behind.
 */
export interface StagedChange extends AsyncDisposable {
  /** What is in force while it is prepared. */
  readonly before: Lock
  /** What is installed, linked or updated, by name; plugins that are not spoken of are no candidates. */
  readonly candidates: readonly Candidate[]
  /** What is no longer there afterwards. */
  readonly removed: readonly LockedPlugin[]
  /** True where `commit` would change nothing. */
  readonly isEmpty: boolean
  /** Puts the new set together, complete and in its place, but not in force. Throws NPM_FAILED and the others of `planChange`. */
  build(): Promise<BuiltSet>
  /**
   * Puts the new set in force, in one step, with these entries for the candidates (`build().plugins`, changed as the person chose). With `holds` on trial: until that resolves with true
   * the new set is in force only as long as this process lives; with false, or where it throws, what was before is in force again. Resolves with what is in force then.
   * Throws PLUGIN_SET_UNBUILT before `build`, and what `holds` throws.
   */
  commit(plugins: readonly LockedPlugin[], holds?: () => Promise<boolean>): Promise<Lock>
}

/** A plugin as the registry's search tells of it. */
export interface FoundPlugin {
  readonly name: string
  readonly version: string
  readonly description: string
  /** When that version was published, as the registry writes it; '' where it does not tell. */
  readonly date: string
}
