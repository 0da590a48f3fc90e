import { realpathSync } from 'node:fs'
import { extname } from 'node:path'
import process from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { AnyService, AnySlot, Manifest } from '@svc/core'
import { HOST_PACKAGES, hostPackageFolder } from '@svc/core/config'
import type { IsolationRequest, QuarantinedName } from '@svc/core/contracts'
import type { PluginDescription } from './contract.ts'
import type { UnrestrictedOptions } from './isolated-process.ts'
import type { OpenHandle } from './open-handles.ts'
import type { PermissionValues } from './permission-values.ts'
import type { Prestarts } from './prestart.ts'
import type { UntrustedSchema } from './untrusted-schema.ts'

/** A reference to a plugin before it runs. */
export interface IsolatedRef {
  readonly name: string
  /** The URL of its module. */
  readonly module: string
  /** Its package and permissions, which the service `Isolation` enforces. Absent: the plugin runs in an unrestricted process. */
  readonly confinement?: {
    readonly folder: string
    readonly permissions: NonNullable<Manifest['permissions']>
    /** The accepted values of settings to which the permissions refer. Absent: all values are accepted. */
    readonly values?: PermissionValues
  }
}

/** `env`, `respawn` and `hangMs` apply without confinement. */
export interface IsolateOptions extends UnrestrictedOptions {
  /** Instances that are not started, because their messages ended or blocked processes like this one. */
  readonly excluded?: readonly QuarantinedName[]
  /** Node flags. Default: those of this process without the inspector's. */
  readonly execArgv?: readonly string[]
  /** Tokens of the host. A token of the plugin with the same name must have the same form. */
  readonly contracts?: readonly (AnyService | AnySlot)[]
  /** Milliseconds until it must have reported its declarations, or be running again after a restart. Default 30,000. */
  readonly startLimitMs?: number
  /** Milliseconds that its cleanup can take before it is killed. Default 2000. */
  readonly closeLimitMs?: number
  /** Called when its process has ended and its contributions are removed. `delayMs` is the delay before its restart, if any. */
  readonly onGone?: (how: string, delayMs: number | undefined) => void
  readonly onBack?: () => void
  /** Watches the handles that it opens, for tests. */
  readonly watch?: HandleListener
  /**
   * Called before its process starts and after it has loaded its module. Throws when the files differ from the accepted ones.
   * The result changes with every write to them.
   */
  readonly verify?: () => Promise<string>
  /** Starts the processes of all confined plugins of a host at a time. */
  readonly prestarts?: Prestarts
}

/** Hears of the handles of a plugin. */
export interface HandleListener {
  /** Called when a process runs. `open` lists its open handles. */
  started(open: () => Promise<readonly OpenHandle[]>): void
  /** Called with the handles that are open after the cleanup of the plugin. */
  left(handles: readonly OpenHandle[]): void
}

/** An isolated plugin, for the host. */
export interface Isolated {
  readonly ref: IsolatedRef
  readonly options: IsolateOptions
  readonly section: string | undefined
  readonly requires: PluginDescription['requires']
  readonly optional: PluginDescription['optional']
  readonly provides: AnyService | undefined
  readonly alsoProvides: readonly AnyService[]
  readonly config?: UntrustedSchema
  own<T extends AnyService | AnySlot>(token: T): T
}

export const START_MS = 30_000
export const CLOSE_MS = 2000

// The build renames the entry together with this file.
const ENTRY = fileURLToPath(new URL(`../isolation/isolate-child${extname(import.meta.url)}`, import.meta.url))
/** The svc code that such a process reads: this package, the kernel, and the packages that svc gives to plugins. */
const HOST_FOLDERS = [
  fileURLToPath(new URL(extname(import.meta.url) === '.js' ? '../../' : '../', import.meta.url)),
  ...HOST_PACKAGES.filter(({ only }) => only === undefined).flatMap(({ name }) => hostPackageFolder(name) ?? []),
]

/** Creates the request for a process of this plugin. */
export function requestFor({ name, module, confinement: held }: IsolatedRef, { execArgv }: IsolateOptions): IsolationRequest {
  const flags = execArgv ?? process.execArgv.filter(flag => !flag.startsWith('--inspect'))
  return {
    plugin: name,
    folder: held?.folder ?? '',
    permissions: held?.permissions ?? {},
    args: [...flags, ENTRY, realUrl(module), name],
    hostFolders: HOST_FOLDERS,
  }
}

/**
 * Creates the request for a process of one instance. Permissions can refer to values that a person has configured. Defaults come
 * from the plugin itself and could grant it anything.
 */
export function instanceRequest(plugin: Isolated, config: unknown, instance: string | undefined): IsolationRequest {
  const own = { section: plugin.section ?? '', value: plugin.config ? plugin.config.written(config) : config }
  return { ...requestFor(plugin.ref, plugin.options), ...(instance === undefined ? {} : { instance }), config: own }
}

/** A sandbox contains real paths and no links to them. The import reports a missing file. */
function realUrl(module: string): string {
  try {
    return pathToFileURL(realpathSync(fileURLToPath(module))).href
  } catch {
    return module
  }
}
