import type { Json, ModelCallBegun, NamedModels, NativeRequest, RequestField, RouteRequest } from '@svc/core/contracts'
import type { CallContext } from '@svc/core'
import { type FieldNames, invalidParam, nameOf, unsupportedParam } from './errors.ts'

/** A JSON object of a request. */
export type Wire = { readonly [name: string]: Json | undefined }

export const isObject = (value: unknown): value is Wire => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Clients send null for fields that they do not set. */
export const isSet = <T>(value: T | null | undefined): value is T => value !== undefined && value !== null

/** The fields of a request that svc cannot translate. */
export interface Leftovers {
  /** Fields that do not change the meaning of the answer: only a server of the same protocol gets them. */
  readonly dropped: Set<string>
  /** Fields that only a server of the same protocol understands: other models are refused. */
  readonly foreign: Set<string>
}

export const createLeftovers = (): Leftovers => ({ dropped: new Set(), foreign: new Set() })

/** Most names in `x-svc-dropped`, and the longest name. */
const MOST_NAMES = 50
const NAME = /^[\w.[\]-]{1,100}$/

/** Adds a name that can come from the client, which ends in a header. */
export function addName(names: Set<string>, name: string): void {
  const isListed = NAME.test(name) && (names.size < MOST_NAMES || names.has(name))
  names.add(isListed ? name : 'other')
}

/** Returns a number of a field. Throws INVALID_VALUE. */
export function numberIn(value: unknown, param: string, minimum: number, maximum: number): number {
  if (typeof value !== 'number' || !(value >= minimum && value <= maximum))
    throw invalidParam(param, `must be a number from ${minimum} to ${maximum}`, shown(value))
  return value
}

export function integerIn(value: unknown, param: string, minimum: number, maximum = Number.MAX_SAFE_INTEGER): number {
  if (!Number.isInteger(value) || Number(value) < minimum || Number(value) > maximum) {
    const range = maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`
    throw invalidParam(param, `must be an integer ${range}`, shown(value))
  }
  return Number(value)
}

export function textIn(value: unknown, param: string): string {
  if (typeof value !== 'string') throw invalidParam(param, 'must be a string', shown(value))
  return value
}

export function booleanIn(value: unknown, param: string): boolean {
  if (typeof value !== 'boolean') throw invalidParam(param, 'must be true or false', shown(value))
  return value
}

export function objectIn(value: unknown, param: string): Wire {
  if (!isObject(value)) throw invalidParam(param, 'must be an object')
  return value
}

export function listIn(value: unknown, param: string): readonly Json[] {
  if (!Array.isArray(value)) throw invalidParam(param, 'must be a list')
  return value as readonly Json[]
}

export function wordIn<T extends string>(value: unknown, param: string, words: readonly T[]): T {
  if (!words.includes(value as T))
    throw invalidParam(param, `must be one of ${words.join(', ')}`, { ...shown(value), allowed: words })
  return value as T
}

const shown = (value: unknown) =>
  typeof value === 'number' || typeof value === 'boolean' || (typeof value === 'string' && value.length <= 200) ? { value } : {}

/** Deepest value inside a string of a request: JSON in a string is not a part of the body that the server checks. */
const DEEPEST = 100

/** Parses JSON of a client that is inside a string. Returns `undefined` if it is not valid, or is nested too deeply. */
export function parsedJson(text: string): Json | undefined {
  try {
    const value = JSON.parse(text) as Json
    return isWithin(value, DEEPEST) ? value : undefined
  } catch {
    return undefined
  }
}

function isWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (levels === 0) return false
  for (const child of Array.isArray(value) ? (value as unknown[]) : Object.values(value))
    if (!isWithin(child, levels - 1)) return false
  return true
}

/** Headers that a server of the same protocol gets. */
const NATIVE_HEADERS = ['openai-beta', 'x-title', 'http-referer']

export function nativeRequest(protocol: string, body: Wire, headers: Readonly<Record<string, string>>): NativeRequest {
  const given = NATIVE_HEADERS.filter(name => headers[name] !== undefined).map(name => [name, headers[name]!] as const)
  return { protocol, body, ...(given.length === 0 ? {} : { headers: Object.fromEntries(given) }) }
}

/** Whether the model of this name is of a server that speaks the protocol, and gets the original request. */
async function isNative(named: NamedModels, name: string, protocol: string, ctx: CallContext): Promise<boolean> {
  const { kind, features } = await named.find(name, ctx)
  return (kind === 'model' || kind === 'alias') && features?.protocol === protocol
}

/** Throws INVALID_VALUE for a field that only servers of the protocol understand, if the model is of another. */
export async function refuseForeign(
  { foreign }: Leftovers,
  model: string,
  protocol: string,
  named: NamedModels,
  ctx: CallContext
): Promise<void> {
  const [first] = foreign
  if (first !== undefined && !(await isNative(named, model, protocol, ctx))) throw unsupportedParam(first, model)
}

/** Fields of svc that no client sends. */
const OWN: ReadonlySet<RequestField> = new Set(['toolCallDeltas', 'native', 'gathered', 'cacheKey'])

/** What is needed to find the fields that a model does not get. */
export interface DroppedFields {
  readonly leftovers: Leftovers
  /** The name of the request. */
  readonly model: string
  readonly protocol: string
  readonly names: FieldNames
}

/** The fields of a request that the answering model does not get, for the header. */
export async function droppedBy(
  start: ModelCallBegun,
  { leftovers, model, protocol, names }: DroppedFields,
  named: NamedModels,
  ctx: CallContext
): Promise<readonly string[]> {
  const own = (start.dropped ?? []).filter(field => !OWN.has(field)).map(field => nameOf(field, names))
  const { dropped, foreign } = leftovers
  if (dropped.size + foreign.size === 0) return own
  // an agent never gets the original request; a model can have been replaced by one of another server
  const isPassed =
    (await isNative(named, model, protocol, ctx)) && (await isNative(named, `${start.provider}/${start.model}`, protocol, ctx))
  return isPassed ? own : [...new Set([...own, ...dropped, ...foreign])]
}

/** The headers of an answer. */
export const droppedHeader = (dropped: readonly string[]): Readonly<Record<string, string>> =>
  dropped.length === 0 ? {} : { 'x-svc-dropped': dropped.join(', ') }

/** The key with which a client repeats a request: a team or workflow runs only once. */
export const keyOf = ({ headers }: RouteRequest): { readonly idempotencyKey?: string } =>
  headers['idempotency-key'] === undefined ? {} : { idempotencyKey: headers['idempotency-key'] }
