import type { IndexPaths, Space } from '@svc/core/contracts'
import { storeInvalid, storeUnknown } from './errors.ts'

/** A collection as its space declares it. */
export interface Declared {
  readonly space: string
  readonly name: string
  readonly indexes: { readonly [index: string]: IndexPaths }
  readonly watched: boolean
}

/** The spaces that this process has opened. A store rejects names that are not in it. */
export interface Catalog {
  /** Throws STORE_INVALID for a malformed space or a name of another space. */
  check(space: Space): void
  /** Checks a space and replaces an earlier one of its name. */
  declare(space: Space): void
  space(name: string): Space
  spaces(): Space[]
  collection(name: string): Declared
  /** The name of the space that declares a log. */
  log(name: string): string
}

const NAME = /^[a-z][a-z0-9_]{0,62}$/

/** Creates an empty catalog. */
export function createCatalog(): Catalog {
  const spaces = new Map<string, Space>()
  const collections = new Map<string, Declared>()
  const logs = new Map<string, string>()

  const forget = (space: string) => {
    for (const [name, declared] of collections) if (declared.space === space) collections.delete(name)
    for (const [name, owner] of logs) if (owner === space) logs.delete(name)
  }
  const check = (space: Space) =>
    checkSpace(space, (kind, name) => (kind === 'log' ? logs.get(name) : collections.get(name)?.space))
  return {
    check,
    declare(space) {
      check(space)
      forget(space.name)
      spaces.set(space.name, structuredClone(space))
      for (const declared of declaredBy(space)) collections.set(declared.name, declared)
      for (const log of space.logs ?? []) logs.set(log, space.name)
    },
    space: name => spaces.get(name) ?? fail(storeUnknown('space', name)),
    spaces: () => [...spaces.values()],
    collection: name => collections.get(name) ?? fail(storeUnknown('collection', name)),
    log: name => logs.get(name) ?? fail(storeUnknown('log', name)),
  }
}

function fail(error: Error): never {
  throw error
}

const declaredBy = (space: Space): Declared[] =>
  Object.entries(space.collections ?? {}).map(([name, { indexes = {}, watched = false }]) => ({
    space: space.name,
    name,
    indexes: structuredClone(indexes),
    watched,
  }))

function checkSpace(space: Space, owner: (kind: string, name: string) => string | undefined): void {
  checkName('space', space.name)
  if (!Number.isSafeInteger(space.version) || space.version < 1)
    throw storeInvalid(`the version of space "${space.name}" must be an integer from 1`)
  const check = (kind: string, name: string) => {
    checkName(kind, name)
    const by = owner(kind, name)
    if (by !== undefined && by !== space.name)
      throw storeInvalid(`the ${kind} "${name}" of space "${space.name}" belongs to space "${by}"`)
  }
  for (const log of space.logs ?? []) check('log', log)
  for (const { name, indexes } of declaredBy(space)) {
    check('collection', name)
    for (const [index, paths] of Object.entries(indexes)) checkIndex(index, paths)
  }
}

function checkName(kind: string, name: string): void {
  if (!NAME.test(name))
    throw storeInvalid(`a ${kind}'s name must be [a-z][a-z0-9_]*, at most 63 characters, was ${JSON.stringify(name)}`)
}

function checkIndex(name: string, paths: IndexPaths): void {
  checkName('index', name)
  if (paths.length === 0 || paths.some(path => path === ''))
    throw storeInvalid(`the index "${name}" needs at least one path, and no path may be empty`)
}
