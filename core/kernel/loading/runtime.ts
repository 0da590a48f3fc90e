import { readFile, realpath, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join, sep } from 'node:path'
import { schema } from '../config/schema.ts'
import type { JsonSchema } from '../config/validator.ts'
import { definePlugin, type Plugin, type Scope } from '../src/plugin.ts'
import type { SvcError } from '../src/errors.ts'
import { type AnySlot, type CallContext, defineService, type ServiceToken, systemContext } from '../src/token.ts'
import { importFailed, runtimeModuleInvalid, sectionTaken } from './errors.ts'
import type { Manifest, PackageInfo } from './manifest.ts'

/** The code of a plugin that this process never runs itself, with its permissions. */
export interface RuntimeModule {
  readonly plugin: string
  readonly code: string
  readonly config: unknown
  readonly permissions: NonNullable<Manifest['permissions']>
}

/** An item that such a plugin contributes: its data and the names of its methods. */
export interface RuntimeItem {
  readonly slot: AnySlot
  readonly name: string
  readonly data: object
  readonly methods: readonly string[]
}

/** Selects a method. The arguments are those of the contract, without the call context. */
export interface RuntimeCall {
  readonly slot: string
  readonly name: string
  readonly method: string
  readonly args: readonly unknown[]
}

/**
 * Runs plugins outside of this process's JavaScript engine: the service `runtime.<name>` for `"runtime": "<name>"` in the
 * manifest.
 */
export interface Runtime {
  /** Lists the contributions of a module. */
  open(module: RuntimeModule, use: CallContext): Promise<readonly RuntimeItem[]>
  call(module: RuntimeModule, call: RuntimeCall, use: CallContext): Promise<unknown>
  /** Runs code for other plugins. The host itself does not call it. */
  run(script: never, use: CallContext): Promise<unknown>
}

const runtimeToken = (word: string): ServiceToken<Runtime> =>
  defineService<Runtime>(`runtime.${word}`, { api: 1, methods: { open: 'call', call: 'call', run: 'call' } })

/** Creates a plugin from code that is read, not imported. Its manifest declares section and configuration. */
export async function runtimePlugin({ name, folder, main, manifest }: PackageInfo, word: string): Promise<Plugin> {
  const code = await readEntry(name, folder, main)
  const { section, config, permissions = {} } = manifest
  return definePlugin({
    ...(section === undefined ? {} : { section }),
    ...(config === undefined ? {} : { config: schema<unknown>(config as JsonSchema) }),
    requires: { runtime: runtimeToken(word) },
    async setup(scope: Scope, { runtime }: { runtime: Runtime }) {
      const module = { plugin: name, code, config: scope.config ?? null, permissions }
      for (const item of await runtime.open(module, systemContext(scope.signal, name))) {
        scope.add(item.slot, item.name, { ...item.data, ...methodsOf(runtime, module, item) })
      }
    },
  }) as Plugin
}

interface Owner {
  readonly name: string
  readonly plugin: Plugin
  readonly found: { readonly manifest: Manifest; readonly isolation?: string }
}

/**
 * Reports untrusted plugins that claim a section of another owner. They get no such configuration and hide none: provider keys
 * and access rules are stored there.
 */
export function sectionsTaken(loaded: readonly Owner[]): SvcError[] {
  return loaded.flatMap(({ name, plugin, found }) => {
    const isStranger = found.manifest.runtime !== undefined || found.isolation === 'process'
    const mine = plugin.section ?? plugin.instances
    if (!isStranger || mine === undefined) return []
    const by = HOST_SECTIONS.some(item => touches(item, mine))
      ? 'svc'
      : loaded.find(other => other.name !== name && takes(plugin, found.manifest, mine, other))?.name
    return by === undefined ? [] : [sectionTaken(name, mine, by)]
  })
}

const HOST_SECTIONS = ['host', 'log', 'plugins']

/**
 * Whether a claimed section is another plugin's, contains one, or lies in one whose schema knows it. Entries beside those of
 * other plugins are allowed for instances, when the manifest declares them.
 */
function takes(plugin: Plugin, { instances, runtime }: Manifest, mine: string, other: Owner): boolean {
  const theirs = other.plugin.section ?? other.plugin.instances
  if (theirs === undefined || !touches(theirs, mine)) return false
  if (plugin.instances !== undefined && plugin.instances === other.plugin.instances)
    return instances?.section !== mine || instances.type !== plugin.type || plugin.type === other.plugin.type
  if (runtime !== undefined || !mine.startsWith(`${theirs}.`)) return true
  return other.plugin.instances !== undefined || knows(other.plugin.config?.json, mine.slice(theirs.length + 1).split('.'))
}

/** Whether a schema mentions a key. */
function knows(json: unknown, [key, ...rest]: readonly string[]): boolean {
  if (key === undefined) return true
  const { properties = {} } = Object(json) as { properties?: Readonly<Record<string, unknown>> }
  return Object.hasOwn(properties, key) && knows(properties[key], rest)
}

const touches = (item: string | undefined, other: string) =>
  item !== undefined && (`${item}.`.startsWith(`${other}.`) || `${other}.`.startsWith(`${item}.`))

/** Passes the arguments without the call context, which is a separate argument. */
function methodsOf(runtime: Runtime, module: RuntimeModule, { slot, name, methods }: RuntimeItem): object {
  const ask =
    (method: string) =>
    (...given: unknown[]) =>
      runtime.call(module, { slot: slot.name, name, method, args: given.slice(0, -1) }, given.at(-1) as CallContext)
  return Object.fromEntries(methods.map(method => [method, ask(method)]))
}

/** Maximum length of a module in characters. */
const LONGEST = 1_048_576
/** Maximum number of bytes of a character. */
const BYTES_EACH = 3

async function readEntry(plugin: string, folder: string, main: string | undefined): Promise<string> {
  const file = join(folder, 'package.json')
  const entry = await realpath(main ? join(folder, main) : createRequire(file).resolve(plugin)).catch((error: unknown) =>
    Promise.reject(importFailed(plugin, error))
  )
  // A file outside of the package does not belong to it, and errors could reveal its text.
  if (!entry.startsWith((await realpath(folder)) + sep)) throw runtimeModuleInvalid(plugin, 'is outside of the package')
  // Reading a pipe would never end, and the size must be known before the file is read.
  const found = await stat(entry)
  if (!found.isFile() || found.size > LONGEST * BYTES_EACH)
    throw runtimeModuleInvalid(plugin, found.isFile() ? `has more than ${LONGEST} characters` : 'is not a file')
  const code = await readFile(entry, 'utf8')
  if (code.length > LONGEST) throw runtimeModuleInvalid(plugin, `has more than ${LONGEST} characters`)
  return code
}

/**
 * Whether the JSON of a plain value has at most about `most` characters. It stops there, so that large untrusted values cost no
 * time.
 */
export const isWithinSize = (value: unknown, most: number): boolean => leftAfter(value, most) >= 0

function leftAfter(value: unknown, most: number): number {
  if (typeof value === 'string') return most - value.length - 2
  if (typeof value !== 'object' || value === null) return most - 8
  let left = most - 2
  // Iterates key by key: listing all keys of a large object would take the time that this function saves.
  for (const key in value) {
    if (left < 0) return left
    left = leftAfter(Reflect.get(value, key), left - key.length - 4)
  }
  return left
}
