import { codeOf, svcError } from '@svc/core'
import type { Json, ModelFailure, ModelFailureKind } from '@svc/core/contracts'

/** An object of a request to a model API. */
export type Fields = { readonly [name: string]: Json | undefined }

export const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

/** A field of the request that cannot be used as it is. */
export const fieldInvalid = (field: string, reason: string) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason } })

/** Names beyond are not listed. */
const MOST_DROPPED = 100

/**
 * What the translation of a request cannot carry. A model server that speaks the API of the client gets the request as it is, so both count only
 * for other models.
 */
export class Losses {
  /** Fields and kinds of content that are left out. */
  readonly dropped = new Set<string>()
  /** The first field that can be neither carried nor left out, or whose value only such a server can know. */
  refusal: Error | undefined = undefined
  readonly #nameOf: (name: string) => string

  /** `nameOf`: the form of a name in which the API lists its fields. */
  constructor(nameOf: (name: string) => string = name => name) {
    this.#nameOf = nameOf
  }

  drop(name: string): void {
    if (this.dropped.size < MOST_DROPPED) this.dropped.add(name)
  }

  refuse(field: string, reason: string): void {
    this.refusal ??= fieldInvalid(field, reason)
    this.drop(field)
  }

  /** Drops the fields of an object that are not known, in the name of their place. `null` counts as absent. */
  dropUnknown(fields: Fields, known: ReadonlySet<string>, place: string): void {
    for (const name in fields)
      if (!known.has(this.#nameOf(name)) && fields[name] !== undefined && fields[name] !== null) this.drop(`${place}.${name}`)
  }
}

export function objectAt(value: Json | undefined, path: string): Fields {
  if (!isFields(value)) throw fieldInvalid(path, 'must be an object')
  return value
}

export function listAt(value: Json | undefined, path: string): readonly Json[] {
  if (!Array.isArray(value)) throw fieldInvalid(path, 'must be a list')
  return value
}

/** Maximum number of tools of a request, on all wires. */
const MOST_TOOLS = 1_024

/** Throws INVALID_VALUE if a request has too many tools. */
export function checkToolCount(count: number, path: string): void {
  if (count > MOST_TOOLS) throw fieldInvalid(path, `must have at most ${MOST_TOOLS} tools`)
}

/** The list of the tools of a request. Throws INVALID_VALUE. */
export function toolsAt(value: Json | undefined, path: string): readonly Json[] {
  const tools = listAt(value, path)
  checkToolCount(tools.length, path)
  return tools
}

export function textAt(value: Json | undefined, path: string): string {
  if (typeof value !== 'string') throw fieldInvalid(path, 'must be a string')
  return value
}

/** A string that is not empty and not longer than this. */
export function nameAt(value: Json | undefined, path: string, longest = 256): string {
  const name = textAt(value, path)
  if (name === '' || name.length > longest) throw fieldInvalid(path, `must have 1 to ${longest} characters`)
  return name
}

export function integerAt(value: Json | undefined, path: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  if (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most) return Number(value)
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
  throw fieldInvalid(path, `must be an integer ${range}`)
}

export function numberAt(value: Json | undefined, path: string, least: number, most: number): number {
  if (typeof value !== 'number' || !(value >= least && value <= most))
    throw fieldInvalid(path, `must be a number from ${least} to ${most}`)
  return value
}

export function flagAt(value: Json | undefined, path: string): boolean {
  if (typeof value !== 'boolean') throw fieldInvalid(path, 'must be true or false')
  return value
}

/** The failure of a model call; `undefined` for another error. */
export function modelFailureOf(error: unknown): (Partial<ModelFailure> & { readonly kind: ModelFailureKind }) | undefined {
  if (codeOf(error) !== 'MODEL_FAILED') return undefined
  const { details } = Object(error) as { readonly details?: Partial<ModelFailure> }
  return { ...details, kind: details?.kind ?? 'network' }
}
