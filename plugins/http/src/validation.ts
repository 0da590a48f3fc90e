import { type Fault, type JsonSchema, type Schema, schema } from '@svc/core'
import type { Json, Route } from '@svc/core/contracts'
import { invalidValue, missingField } from './errors.ts'
import type { Exchange } from './exchange.ts'

/** The checks of one route, made once and compiled at its first request. */
export interface Checks {
  readonly body: Check | undefined
  readonly query: Check | undefined
}
interface Check {
  readonly schema: Schema
  readonly required: readonly string[]
  /** Query parameters that are numbers or booleans. */
  readonly typed: ReadonlyMap<string, string>
  /** The names it knows; others are nobody's business. */
  readonly known: ReadonlySet<string>
}
type Fields = Readonly<Record<string, unknown>>

export const createChecks = (route: Route): Checks => ({ body: checkOf(route.body), query: checkOf(route.query) })

function checkOf(json: JsonSchema | undefined): Check | undefined {
  if (json === undefined) return undefined
  const { required = [], properties = {} } = (typeof json === 'object' ? json : {}) as {
    required?: string[]
    properties?: Record<string, { type?: string }>
  }
  const typed = Object.entries(properties).filter(([, { type }]) => type === 'integer' || type === 'number' || type === 'boolean')
  return {
    schema: schema(json, { faults: 'first' }),
    required,
    typed: new Map(typed.map(([name, { type }]) => [name, type!])),
    known: new Set(Object.keys(properties)),
  }
}

/** The gate of body and query: what the route's schemas do not allow goes no further. Throws MISSING_FIELD, INVALID_VALUE. */
export function validation(x: Exchange): void {
  const checks = x.route?.checks
  if (!checks) return
  if (x.search !== '') x.query = parseQuery(x.search, checks.query?.known)
  if (checks.query) hold(checks.query, typedQuery(checks.query, x.query))
  if (checks.body) hold(checks.body, x.body as Json as Fields)
}

function hold(check: Check, fields: Fields) {
  const missing = check.required.filter(name => !Object.hasOwn(fields, name))
  if (missing.length > 0) throw missingField(missing, check.required, Object.keys(fields).slice(0, 100))
  const fault = check.schema.check(fields)[0]
  if (fault) throw invalid(fault)
}

function invalid(fault: Fault) {
  const value = isShort(fault.value) ? { value: fault.value } : {}
  return invalidValue(fault.path || 'body', fault.message, { ...value, ...(fault.allowed ? { allowed: fault.allowed } : {}) })
}

const isShort = (value: unknown) =>
  (typeof value === 'string' ? value.length <= 200 : value !== undefined && typeof value !== 'object') || value === null

/** Of a parameter that nobody knows the first counts; one that is known must not say two things. */
function parseQuery(search: string, known: ReadonlySet<string> | undefined): Readonly<Record<string, string>> {
  const query: Record<string, string> = {}
  for (const [name, value] of new URLSearchParams(search)) {
    if (Object.hasOwn(query, name)) {
      if (known?.has(name)) throw invalidValue(name, 'is given more than once')
      continue
    }
    Object.defineProperty(query, name, { value, enumerable: true })
  }
  return query
}

/** A query is text; where the schema wants a number or boolean, text that is one counts as one. */
function typedQuery({ typed }: Check, query: Readonly<Record<string, string>>): Fields {
  if (typed.size === 0) return { ...query }
  return Object.fromEntries(Object.entries(query).map(([name, text]) => [name, typedValue(typed.get(name), text)]))
}

function typedValue(type: string | undefined, text: string): unknown {
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  return type !== undefined && /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
}
