import type { IndexPaths, Space, TextFields } from '@svc/core/contracts'

// The declarations that a database holds: those of all processes, so also of processes of other releases.

/** An index in the database. Its paths identify it, so processes of two releases can have different ones. */
export interface StoredIndex {
  readonly id: number
  readonly paths: IndexPaths
}

/** A full-text index in the database. */
export interface StoredTextIndex {
  readonly id: number
  readonly fields: TextFields
}

export interface StoredCollection {
  readonly id: number
  readonly space: string
  readonly watched: boolean
  /** Whether a restore keeps its present records. */
  readonly lasting: boolean
  readonly indexes: readonly StoredIndex[]
  readonly texts: readonly StoredTextIndex[]
}

export interface StoredCatalog<C extends StoredCollection = StoredCollection> {
  /** The versions of the spaces. */
  readonly spaces: ReadonlyMap<string, number>
  readonly collections: ReadonlyMap<string, C>
  readonly logs: ReadonlyMap<string, { readonly id: number; readonly space: string }>
}

const pathsSpec = (paths: IndexPaths): string => JSON.stringify(paths)

/** What identifies a full-text index. */
export const textSpec = ({ fields, filters = [] }: TextFields): string => JSON.stringify({ fields, filters })

/** The id of an index by its paths. */
export const indexOf = (collection: StoredCollection | undefined, paths: IndexPaths): number | undefined => {
  const wanted = pathsSpec(paths)
  return collection?.indexes.find(index => pathsSpec(index.paths) === wanted)?.id
}

/** A full-text index by its declaration. */
export const textOf = (collection: StoredCollection | undefined, fields: TextFields): StoredTextIndex | undefined => {
  const wanted = textSpec(fields)
  return collection?.texts.find(text => textSpec(text.fields) === wanted)
}

/** Whether the database has all of a space as declared, so that opening it writes nothing. */
export function isDeclared({ spaces, collections, logs }: StoredCatalog, space: Space): boolean {
  return (
    spaces.has(space.name) &&
    (space.logs ?? []).every(log => logs.get(log)?.space === space.name) &&
    Object.entries(space.collections ?? {}).every(([name, { indexes = {}, text = {}, watched = false, lasting = false }]) => {
      const stored = collections.get(name)
      return (
        stored?.space === space.name &&
        stored.watched === watched &&
        stored.lasting === lasting &&
        Object.values(indexes).every(paths => indexOf(stored, paths) !== undefined) &&
        Object.values(text).every(fields => textOf(stored, fields) !== undefined)
      )
    })
  )
}

/** The ids of the indexes that the declaration of a space does not name any more. */
export function indexesToDrop(
  { collections }: StoredCatalog,
  space: Space
): { readonly indexes: number[]; readonly texts: number[] } {
  const dropped = Object.entries(space.collections ?? {}).map(([name, { indexes = {}, text = {} }]) => {
    const named = new Set(Object.values(indexes).map(pathsSpec))
    const texts = new Set(Object.values(text).map(textSpec))
    const stored = collections.get(name)
    return {
      indexes: (stored?.indexes ?? []).filter(({ paths }) => !named.has(pathsSpec(paths))).map(({ id }) => id),
      texts: (stored?.texts ?? []).filter(({ fields }) => !texts.has(textSpec(fields))).map(({ id }) => id),
    }
  })
  return { indexes: dropped.flatMap(item => item.indexes), texts: dropped.flatMap(item => item.texts) }
}
