import type { Manifest } from '@svc/core'
import type { Lock, LockedPlugin, Origin, Permissions } from './lock.ts'

/** The requested changes. All take effect together, or none. */
export interface ChangeRequest {
  /**
   * `spec`: `name`, `name@range`, a folder, or the file of a tarball. `scripts`: run its own install scripts, not those of its
   * dependencies.
   */
  readonly install?: readonly { readonly spec: string; readonly scripts?: boolean }[]
  /** Folders to use in place. */
  readonly link?: readonly string[]
  /** Names. */
  readonly uninstall?: readonly string[]
  /**
   * Names, or all. Requests each plugin again as it was installed: the newest version of `name@range`, a folder or tarball
   * again, links never. Allowed install scripts stay allowed.
   */
  readonly update?: readonly string[] | 'all'
  /** Names. Goes back to the version that the installed one has replaced on this machine. */
  readonly rollback?: readonly string[]
  /** Use only npm's cache. */
  readonly offline?: boolean
}

/**
 * A step, reported when it begins, in this order. Steps that are not needed are left out; `fetch`, `inspect` and `scripts` come
 * once for each plugin. Several plugins are fetched and inspected at a time.
 */
export interface Progress {
  readonly step: 'fetch' | 'inspect' | 'resolve' | 'copy' | 'install' | 'scripts' | 'unpack' | 'hash' | 'pack' | 'commit'
  /** The subject of the step: a name, or the end of a path. */
  readonly plugin?: string
  /** Its number, from 1, and the number of all plugins of this step. */
  readonly at?: number
  readonly of?: number
  /** For `install`: the number of packages in the new set. */
  readonly packages?: number
}

export interface SetOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: Progress) => void
  /** The npm to run, as a file. Default: the one that runs this process (`npm_execpath`), or `npm` from PATH. */
  readonly npm?: string
  /** Limit for one run of npm, in milliseconds; default 300,000. */
  readonly limitMs?: number
}

export interface PermissionChange {
  /**
   * New permissions: `network api.example.com`, `env KEY`, `read /path`, `write /path`, `services store`, `hooks chat.turn`.
   */
  readonly added: readonly string[]
  readonly removed: readonly string[]
}

/** A plugin after the change. None of its code has run. */
export interface PluginCandidate {
  readonly name: string
  /** Its installed version; undefined if it is new. */
  readonly from?: string
  /** Its version after the change. */
  readonly version: string
  readonly origin: Origin
  readonly manifest: Manifest
  /** `description` of its package.json; '' if it has none. */
  readonly description: string
  readonly permissions: Permissions
  /** The difference to the accepted permissions; for a new plugin, all of them. */
  readonly permissionChange: PermissionChange
  /** Names of its own install scripts (`preinstall`, `install`, `postinstall`; `binding.gyp` if npm would build). */
  readonly installScripts: readonly string[]
  /** `name@version` of the dependencies with install scripts, which never run. */
  readonly dependencyScripts: readonly string[]
  /** Whether its own scripts will run. */
  readonly scripts: boolean
  /** Number of its dependencies, including indirect and shared ones. */
  readonly dependencies: number
  /** Its dependencies in the versions that npm has chosen. */
  readonly packages: readonly { readonly name: string; readonly version: string; readonly integrity: string }[]
  /** The claims of the registry; undefined for a folder, tarball or link, and if the registry did not answer. */
  readonly registry?: {
    /** Number of registry keys that signed it, as the registry claims, unchecked. */
    readonly signatures: number
    /** The URL of the kind of its provenance statement, as the registry claims, unchecked. */
    readonly provenance?: string
  }
  /** `sha512-…` of its tarball; '' for a link. */
  readonly integrity: string
  /** Unpacked size of its own files in bytes; 0 for a link. */
  readonly bytes: number
  /** The same bytes are installed already: nothing would change. */
  readonly same: boolean
}

/** The result of `build`. */
export interface BuiltSet {
  /** The folder of the new set; '' if only links are left. */
  readonly folder: string
  /**
   * An entry for each candidate, ready for `commit`. Former choices stay (isolation, enabled, trusted). A new plugin is
   * enabled, not trusted, and runs in `process`, or in `quickjs` or `data` if its manifest's `runtime` says so. `permissions`
   * are those of the candidate: committing them accepts them.
   */
  readonly plugins: readonly LockedPlugin[]
}

/**
 * A change that is prepared beside the set in effect: `planChange` → show `candidates` and ask → `build()` → `commit(…)`. It
 * blocks other changes until disposal. Disposal before `commit` leaves no traces.
 */
export interface StagedChange extends AsyncDisposable {
  /** The lock in effect during the preparation. */
  readonly before: Lock
  /** Installed, linked or updated plugins, by name. Unchanged plugins are not candidates. */
  readonly candidates: readonly PluginCandidate[]
  /** Plugins that the change removes. */
  readonly removed: readonly LockedPlugin[]
  /** True if `commit` would change nothing. */
  readonly isEmpty: boolean
  /** Builds the new set in its place, without putting it in effect. Throws NPM_FAILED and the errors of `planChange`. */
  build(): Promise<BuiltSet>
  /**
   * Puts the new set in effect in one step, with these entries for the candidates (`build().plugins` with the user's choices).
   * With `holds`, the set is on trial: it is in effect while this process lives, until `holds` resolves. If `holds` resolves
   * with false or throws, the former set is in effect again. Resolves with the lock in effect. Throws PLUGIN_SET_UNBUILT before
   * `build`, and the errors of `holds`.
   */
  commit(plugins: readonly LockedPlugin[], holds?: () => Promise<boolean>): Promise<Lock>
}

/** A plugin in a search result of the registry. */
export interface FoundPlugin {
  readonly name: string
  readonly version: string
  readonly description: string
  /** Publication date of that version, as the registry writes it; '' if unknown. */
  readonly date: string
}
