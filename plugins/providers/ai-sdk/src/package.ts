import { existsSync, readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { fileURLToPath } from 'node:url'
import { messageOf } from '@svc/core'
import { badExport, factoryFailed, noFactory, packageBroken, packageMissing, versionUnknown } from './errors.ts'
import { type LanguageModel, VERSIONS } from './sdk.ts'

/** How packages are looked up and loaded. */
export interface Packages {
  /** File or folder URLs from which a package may be seen; the first that has it counts. */
  readonly places: readonly string[]
  /** Imports `name` as a module at `place` would. */
  importFrom(name: string, place: string): Promise<unknown>
}

/** A package that was found; nothing of it has run. */
interface FoundPackage {
  readonly place: string
  readonly version: string
}

/** Finds a package, or a module by its path from here. */
export function findPackage(name: string, places: Packages['places']): FoundPackage | undefined {
  for (const place of places) {
    const file = isPath(name) ? moduleAt(name, place) : manifestOf(name, place)
    if (file !== undefined) return { place, version: isPath(name) ? '' : versionIn(file) }
  }
  return undefined
}

const isPath = (name: string) => /^\.{0,2}\//.test(name)

function moduleAt(name: string, place: string): string | undefined {
  const file = fileURLToPath(new URL(name, place))
  return existsSync(file) ? file : undefined
}

function manifestOf(name: string, place: string): string | undefined {
  try {
    return findPackageJSON(name, place)
  } catch {
    return undefined
  }
}

function versionIn(file: string): string {
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version?: unknown }
  return typeof version === 'string' ? version : ''
}

type Factory = (options: object) => unknown
type MakeModel = (id: string) => unknown

/** What is asked of a package. */
export interface Asked {
  readonly package: string
  /** The factory, and after a dot the method of what it makes. */
  readonly export?: string | undefined
  readonly options: object
  /** A model to try it with at the start: creating one sends no request. */
  readonly model: string | undefined
  /** Takes secrets out of words. */
  readonly hide: (text: string) => string
}

/** Loads a package and makes its provider; answers what makes its models. Throws PROVIDER_PACKAGE. */
export async function openPackage(asked: Asked, packages: Packages): Promise<(id: string) => LanguageModel> {
  const found = findPackage(asked.package, packages.places)
  if (found === undefined) throw packageMissing(asked.package)
  const { place, version } = found
  const exports = await load(asked.package, place, packages)
  const [name, method] = asked.export?.split('.') ?? []
  const factory = name === undefined ? factoryIn(exports, asked.package) : exports[name]
  if (typeof factory !== 'function') throw badExport(asked.package, name ?? '', makersIn(exports))
  const provider = make(factory as Factory, asked)
  const makeModel = makerOf(provider, method)
  if (makeModel === undefined) throw badExport(asked.package, asked.export ?? factory.name, makersIn(exports))
  const checked = (made: unknown): LanguageModel => {
    const spoken = (made as { specificationVersion?: unknown } | null)?.specificationVersion
    if (isKnown(spoken) && typeof (made as { doStream?: unknown }).doStream === 'function') return made as LanguageModel
    throw versionUnknown(asked.package, version, spoken)
  }
  tryOut(provider, makeModel, checked, asked.model, spoken => versionUnknown(asked.package, version, spoken))
  return id => checked(makeModel(id))
}

async function load(name: string, place: string, packages: Packages): Promise<Record<string, unknown>> {
  try {
    return (await packages.importFrom(name, place)) as Record<string, unknown>
  } catch (error) {
    throw packageBroken(name, messageOf(error))
  }
}

const makersIn = (exports: Record<string, unknown>) =>
  Object.keys(exports).filter(name => /^create[A-Z]/.test(name) && typeof exports[name] === 'function')

/** The one `createX`; of several the one that is called like the package; else the default export. */
function factoryIn(exports: Record<string, unknown>, name: string): unknown {
  const makers = makersIn(exports)
  const letters = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
  const called = makers.find(maker => letters(maker.slice('create'.length)) === letters(name.split('/').at(-1) ?? ''))
  const maker = called ?? (new Set(makers.map(one => exports[one])).size === 1 ? makers[0] : undefined)
  const factory = maker === undefined ? exports.default : exports[maker]
  if (typeof factory !== 'function' || isProvider(factory)) throw noFactory(name, makers)
  return factory
}

/** A provider that is made already takes no key, no address, and no fetch of ours. */
const isProvider = (value: object) => 'languageModel' in value

function make(factory: Factory, { package: name, options, hide }: Asked): unknown {
  try {
    return factory(options)
  } catch (error) {
    throw factoryFailed(name, hide(messageOf(error)))
  }
}

function makerOf(provider: unknown, method: string | undefined): MakeModel | undefined {
  const methods = provider as Record<string, unknown> | null | undefined
  const names = method === undefined ? ['languageModel', 'chatModel', 'chat'] : [method]
  const name = names.find(one => typeof methods?.[one] === 'function')
  if (name !== undefined) return id => (methods as Record<string, MakeModel>)[name]!(id)
  return method === undefined && typeof provider === 'function' ? (provider as MakeModel) : undefined
}

const isKnown = (version: unknown) => VERSIONS.some(one => one === version)

/** Tells at the start what could not be used: by a model, or by what the provider says of itself where it knows no such model. */
function tryOut(
  provider: unknown,
  makeModel: MakeModel,
  checked: (made: unknown) => LanguageModel,
  model: string | undefined,
  unknown: (version: unknown) => Error
): void {
  const spoken = (provider as { specificationVersion?: unknown }).specificationVersion
  if (spoken !== undefined && !isKnown(spoken)) throw unknown(spoken)
  let made: unknown
  try {
    made = makeModel(model ?? 'any')
  } catch {
    return
  }
  checked(made)
}
