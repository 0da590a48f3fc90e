import { existsSync, readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { fileURLToPath } from 'node:url'
import { messageOf } from '@svc/core'
import { badExport, factoryFailed, noFactory, packageBroken, packageMissing, versionUnknown } from './errors.ts'
import { type EmbeddingModel, type LanguageModel, VERSIONS } from './sdk.ts'

/** Look-up and import of packages. */
export interface Packages {
  /** File or folder URLs to resolve packages from. The first match wins. */
  readonly places: readonly string[]
  /** Imports `name` as a module at `place` would. */
  importFrom(name: string, place: string): Promise<unknown>
}

/** A resolved package that is not imported yet. */
interface ResolvedPackage {
  readonly place: string
  readonly version: string
}

/** Finds a package, or a module by its relative path. */
export function findPackage(name: string, places: Packages['places']): ResolvedPackage | undefined {
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

/** Arguments of `openPackage`. */
export interface PackageRequest {
  readonly package: string
  /** Name of the factory, and after a dot the method that creates models. */
  readonly export?: string | undefined
  readonly options: object
  /** Model for a trial at the start, which sends no request. */
  readonly model: string | undefined
  /** Redacts secrets. */
  readonly hide: (text: string) => string
}

/** The models of a package. */
export interface PackageModels {
  readonly makeModel: (id: string) => LanguageModel
  /** Creates models for embeddings, if the package has any. */
  readonly makeEmbedding?: (id: string) => EmbeddingModel
  /** A model, if the package makes one for any id. */
  readonly trial?: LanguageModel
}

/** Loads a package, creates its provider and returns the functions that create models. Throws PROVIDER_PACKAGE. */
export async function openPackage(request: PackageRequest, packages: Packages): Promise<PackageModels> {
  const resolved = findPackage(request.package, packages.places)
  if (resolved === undefined) throw packageMissing(request.package)
  const { place, version } = resolved
  const exports = await load(request.package, place, packages)
  const [name, method] = request.export?.split('.') ?? []
  const factory = name === undefined ? factoryIn(exports, request.package) : exports[name]
  if (typeof factory !== 'function') throw badExport(request.package, name ?? '', makersIn(exports))
  const provider = make(factory as Factory, request)
  const makeModel = makerOf(provider, method)
  if (makeModel === undefined) throw badExport(request.package, request.export ?? factory.name, makersIn(exports))
  const checked = (made: unknown): LanguageModel => {
    const reported = (made as { specificationVersion?: unknown } | null)?.specificationVersion
    if (isSupported(reported) && typeof (made as { doStream?: unknown }).doStream === 'function') return made as LanguageModel
    throw versionUnknown(request.package, version, reported)
  }
  const trial = tryOut(provider, makeModel, checked, request.model, spoken => versionUnknown(request.package, version, spoken))
  const makeEmbedding = embeddingMaker(provider)
  return { makeModel: id => checked(makeModel(id)), ...(makeEmbedding ? { makeEmbedding } : {}), ...(trial ? { trial } : {}) }
}

/** The method that creates models for embeddings. Packages without such models have it too, and throw. */
function embeddingMaker(provider: unknown): ((id: string) => EmbeddingModel) | undefined {
  const methods = provider as Record<string, unknown> | null | undefined
  const name = ['embeddingModel', 'textEmbeddingModel'].find(candidate => typeof methods?.[candidate] === 'function')
  if (name === undefined) return undefined
  const makeEmbedding = (id: string) => (methods as Record<string, MakeModel>)[name]!(id) as EmbeddingModel
  try {
    const made = makeEmbedding('any')
    return isSupported(made?.specificationVersion) && typeof made.doEmbed === 'function' ? makeEmbedding : undefined
  } catch {
    return undefined
  }
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

/** The only `createX`, or the `createX` with the name of the package, or the default export. */
function factoryIn(exports: Record<string, unknown>, name: string): unknown {
  const makers = makersIn(exports)
  const letters = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
  const called = makers.find(maker => letters(maker.slice('create'.length)) === letters(name.split('/').at(-1) ?? ''))
  const maker = called ?? (new Set(makers.map(maker => exports[maker])).size === 1 ? makers[0] : undefined)
  const factory = maker === undefined ? exports.default : exports[maker]
  if (typeof factory !== 'function' || isProvider(factory)) throw noFactory(name, makers)
  return factory
}

/** True for a provider instance, which does not accept a key, an address or a fetch. */
const isProvider = (value: object) => 'languageModel' in value

function make(factory: Factory, { package: name, options, hide }: PackageRequest): unknown {
  try {
    return factory(options)
  } catch (error) {
    throw factoryFailed(name, hide(messageOf(error)))
  }
}

function makerOf(provider: unknown, method: string | undefined): MakeModel | undefined {
  const methods = provider as Record<string, unknown> | null | undefined
  const names = method === undefined ? ['languageModel', 'chatModel', 'chat'] : [method]
  const name = names.find(candidate => typeof methods?.[candidate] === 'function')
  if (name !== undefined) return id => (methods as Record<string, MakeModel>)[name]!(id)
  return method === undefined && typeof provider === 'function' ? (provider as MakeModel) : undefined
}

const isSupported = (version: unknown) => VERSIONS.some(supported => supported === version)

/** Rejects an unsupported version at the start: by a trial model, or by the version of the provider if it does not know the model. */
function tryOut(
  provider: unknown,
  makeModel: MakeModel,
  checked: (made: unknown) => LanguageModel,
  model: string | undefined,
  unknown: (version: unknown) => Error
): LanguageModel | undefined {
  const spoken = (provider as { specificationVersion?: unknown }).specificationVersion
  if (spoken !== undefined && !isSupported(spoken)) throw unknown(spoken)
  let made: unknown
  try {
    made = makeModel(model ?? 'any')
  } catch {
    return undefined
  }
  return checked(made)
}
