import { realpathSync } from 'node:fs'
import { dirname, extname } from 'node:path'
import process from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { AnyService, AnySlot, Manifest } from '@svc/core'
import type { IsolatedName, IsolationRequest } from '@svc/core/contracts'
import type { PluginDescription } from './contract.ts'
import type { UntrustedSchema } from './untrusted-schema.ts'

/** A plugin by what can be known before it runs. */
export interface IsolatedRef {
  readonly name: string
  /** The URL of its module. */
  readonly module: string
  /** Its package, which the service `Isolation` holds to what it may have. Without it the plugin runs in a plain process, held by nothing. */
  readonly confinement?: {
    readonly folder: string
    readonly permissions: NonNullable<Manifest['permissions']>
  }
}

export interface IsolateOptions {
  /** Set-ups that are not started: they ended or blocked processes like this one by what they sent. */
  readonly excluded?: readonly IsolatedName[]
  /** Of a plain process: all of its environment. Default: PATH and what says the time zone and language. */
  readonly env?: NodeJS.ProcessEnv
  /** Node's flags. Default: those of this process, but for the inspector's. */
  readonly execArgv?: readonly string[]
  /** The host's own tokens: what the plugin knows under their names must have their form. */
  readonly contracts?: readonly (AnyService | AnySlot)[]
  /** Milliseconds until it must have said what it declares, or be back after its death. Default 30,000. */
  readonly startLimitMs?: number
  /** Milliseconds its own closing may take before it is killed. Default 2000. */
  readonly closeLimitMs?: number
  /** Of a plain process: brings it up again after its death, with growing pauses. */
  readonly respawn?: boolean
  /** Of a plain process: milliseconds without an answer after which it is killed. Default: never. */
  readonly hangMs?: number
  /** Its process has ended and what it added is gone; `delayMs` until it comes back, if it does. */
  readonly onGone?: (how: string, delayMs: number | undefined) => void
  readonly onBack?: () => void
  /** Called before its process is started and once it has loaded its module: throws where its files are not those that were accepted; what it returns changes with every write to them. */
  readonly verify?: () => Promise<string>
}

/** A plugin that runs elsewhere, as the host holds it. */
export interface Isolated {
  readonly ref: IsolatedRef
  readonly options: IsolateOptions
  readonly section: string | undefined
  readonly requires: PluginDescription['requires']
  readonly optional: PluginDescription['optional']
  readonly provides: AnyService | undefined
  readonly config?: UntrustedSchema
  own<T extends AnyService | AnySlot>(token: T): T
}

export const START_MS = 30_000
export const CLOSE_MS = 2000

// The build renames the entry with this file.
const ENTRY = fileURLToPath(new URL(`../isolation/isolate-child${extname(import.meta.url)}`, import.meta.url))
/** What such a process reads of svc: these processes, and the kernel. */
const HOST_FOLDERS = [
  fileURLToPath(new URL(extname(import.meta.url) === '.js' ? '../../' : '../', import.meta.url)),
  dirname(fileURLToPath(import.meta.resolve('@svc/core/package.json'))),
]

/** What a process for this plugin is asked for with. */
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

/** A sandbox shows where things really lie, and no links to them. What is not there is told by the import. */
function realUrl(module: string): string {
  try {
    return pathToFileURL(realpathSync(fileURLToPath(module))).href
  } catch {
    return module
  }
}
