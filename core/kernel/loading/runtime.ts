import { readFile, realpath, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join, sep } from 'node:path'
import { schema } from '../config/schema.ts'
import type { JsonSchema } from '../config/validator.ts'
import { definePlugin, type Plugin, type Scope } from '../src/plugin.ts'
import type { SvcError } from '../src/svc-error.ts'
import { type AnySlot, type CallContext, defineService, type ServiceToken, systemContext } from '../src/token.ts'
import { importFailed, runtimeModuleInvalid, sectionTaken } from './errors.ts'
import type { Manifest, PackageInfo } from './manifest.ts'

/** A plugin's code that this process never runs itself, and what it may have. */
export interface RuntimeModule {
  readonly plugin: string
  readonly code: string
  readonly config: unknown
  readonly permissions: NonNullable<Manifest['permissions']>
}

/** One thing that such a plugin contributes: its data, and the names of its methods. */
export interface RuntimeItem {
  readonly slot: AnySlot
  readonly name: string
  readonly data: object
  readonly methods: readonly string[]
}

/** Which method is meant; the arguments are those of the contract, without `use`. */
export interface RuntimeCall {
  readonly slot: string
  readonly name: string
  readonly method: string
  readonly args: readonly unknown[]
}

/** Runs plugins that never enter this process's engine: the service `runtime.<word>` for the manifest's `"runtime": "<word>"`. */
export interface Runtime {
  /** Looks what a module contributes. */
  open(module: RuntimeModule, use: CallContext): Promise<readonly RuntimeItem[]>
  call(module: RuntimeModule, call: RuntimeCall, use: CallContext): Promise<unknown>
  /** Runs a piece of code for other plugins; the host itself never asks for it. */
  run(script: never, use: CallContext): Promise<unknown>
}

const runtimeToken = (word: string): ServiceToken<Runtime> =>
  defineService<Runtime>(`runtime.${word}`, { api: 1, methods: { open: 'call', call: 'call', run: 'call' } })

/** Makes a plugin of code that is read, not imported; its section and configuration stand in the manifest. */
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

/** Code that nobody vouches for gets no configuration, and takes none away, of which another says that it is his: keys of providers lie there, and what says who may ask. */
export function sectionsTaken(loaded: readonly Owner[]): SvcError[] {
  return loaded.flatMap(({ name, plugin, found }) => {
    const isStranger = found.manifest.runtime !== undefined || found.isolation === 'process'
    const mine = plugin.section ?? plugin.instances
    if (!isStranger || mine === undefined) return []
    const by = HOST_SECTIONS.some(one => touches(one, mine))
      ? 'svc'
      : loaded.find(other => other.name !== name && takes(plugin, found.manifest, mine, other))?.name
    return by === undefined ? [] : [sectionTaken(name, mine, by)]
  })
}

const HOST_SECTIONS = ['host', 'log', 'plugins']

/** Whether a section is another's, has one in it, or lies in one whose schema knows it; entries beside those of others are what instances are for, where the manifest says so. */
function takes(plugin: Plugin, { instances, runtime }: Manifest, mine: string, other: Owner): boolean {
  const theirs = other.plugin.section ?? other.plugin.instances
  if (theirs === undefined || !touches(theirs, mine)) return false
  if (plugin.instances !== undefined && plugin.instances === other.plugin.instances)
    return instances?.section !== mine || instances.type !== plugin.type || plugin.type === other.plugin.type
  if (runtime !== undefined || !mine.startsWith(`${theirs}.`)) return true
  return other.plugin.instances !== undefined || knows(other.plugin.config?.json, mine.slice(theirs.length + 1).split('.'))
}

/** Whether a schema says something of a key. */
function knows(json: unknown, [key, ...rest]: readonly string[]): boolean {
  if (key === undefined) return true
  const { properties = {} } = Object(json) as { properties?: Readonly<Record<string, unknown>> }
  return Object.hasOwn(properties, key) && knows(properties[key], rest)
}

const touches = (one: string | undefined, other: string) =>
  one !== undefined && (`${one}.`.startsWith(`${other}.`) || `${other}.`.startsWith(`${one}.`))

/** The arguments without `use`, which goes its own way. */
function methodsOf(runtime: Runtime, module: RuntimeModule, { slot, name, methods }: RuntimeItem): object {
  const ask =
    (method: string) =>
    (...given: unknown[]) =>
      runtime.call(module, { slot: slot.name, name, method, args: given.slice(0, -1) }, given.at(-1) as CallContext)
  return Object.fromEntries(methods.map(method => [method, ask(method)]))
}

/** The most characters of such a module. */
const LONGEST = 1_048_576
/** The most bytes of one of them. */
const BYTES_EACH = 3

async function readEntry(plugin: string, folder: string, main: string | undefined): Promise<string> {
  const file = join(folder, 'package.json')
  const entry = await realpath(main ? join(folder, main) : createRequire(file).resolve(plugin)).catch((error: unknown) =>
    Promise.reject(importFailed(plugin, error))
  )
  // What lies elsewhere is not the package's, and its text would be told in errors.
  if (!entry.startsWith((await realpath(folder)) + sep)) throw runtimeModuleInvalid(plugin, 'lies outside the package')
  // A pipe would never end, and what is too large shall not be read first.
  const found = await stat(entry)
  if (!found.isFile() || found.size > LONGEST * BYTES_EACH)
    throw runtimeModuleInvalid(plugin, found.isFile() ? `has more than ${LONGEST} characters` : 'is no file')
  const code = await readFile(entry, 'utf8')
  if (code.length > LONGEST) throw runtimeModuleInvalid(plugin, `has more than ${LONGEST} characters`)
  return code
}

/** Whether a value of plain data is no longer than so many characters, more or less: at most as much of it is looked at, so that a stranger's costs no time. */
export const isWithinSize = (value: unknown, most: number): boolean => leftAfter(value, most) >= 0

function leftAfter(value: unknown, most: number): number {
  if (typeof value === 'string') return most - value.length - 2
  if (typeof value !== 'object' || value === null) return most - 8
  let left = most - 2
  // by its keys one after the other: to list them all is what would cost the time
  for (const key in value) {
    if (left < 0) return left
    left = leftAfter(Reflect.get(value, key), left - key.length - 4)
  }
  return left
}
