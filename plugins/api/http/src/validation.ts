import { type SchemaProblem, type JsonSchema, schema } from '@svc/core'
import type { Route } from '@svc/core/contracts'
import { type ToolSchema, toolSchema } from '@svc/plugin-kit/tool-schema'
import type { Check, Checks, Fields, Middleware } from './context.ts'
import { invalidValue, missingField } from './errors.ts'

/** `isIsolated`: the schemas are a stranger's, whose patterns JavaScript's own engine might take for ever with. */
export const createChecks = (route: Route, isIsolated: boolean): Checks => ({
  body: route.accepts === 'bytes' ? undefined : checkOf(route.body, isIsolated),
  query: checkOf(route.query, isIsolated),
})

function checkOf(json: JsonSchema | undefined, isIsolated: boolean): Check | undefined {
  if (json === undefined) return undefined
  const { required = [], properties = {} } = (typeof json === 'object' ? json : {}) as {
    required?: string[]
    properties?: Record<string, { type?: string }>
  }
  const typed = Object.entries(properties).filter(([, { type }]) => type === 'integer' || type === 'number' || type === 'boolean')
  return {
    faults: isIsolated ? boundedFaults(json) : ownFaults(json),
    required,
    typed: new Map(typed.map(([name, { type }]) => [name, type!])),
    known: new Set(Object.keys(properties)),
  }
}

function ownFaults(json: JsonSchema): Check['faults'] {
  const own = schema(json, { faults: 'first' })
  return fields => own.check(fields)
}

function boundedFaults(json: JsonSchema): Check['faults'] {
  let made: Promise<ToolSchema> | undefined
  return async fields => (await (made ??= toolSchema(json))).check(fields, 'first')
}

/** Refuses what the route's schemas of query and body do not allow. Throws MISSING_FIELD, INVALID_VALUE. */
export const validation: Middleware = async (ctx, next) => {
  const { query, body } = ctx.state.route?.checks ?? {}
  if (ctx.state.route && ctx.querystring !== '') ctx.state.query = parseQuery(ctx.querystring, query?.known)
  const looking = query && hold(query, typedQuery(query, ctx.state.query))
  if (looking) await looking // of an isolated plugin's schema
  const holding = body && hold(body, ctx.request.body as Fields)
  if (holding) await holding
  return next()
}

function hold(check: Check, fields: Fields): void | Promise<void> {
  const missing = check.required.filter(name => !Object.hasOwn(fields, name))
  if (missing.length > 0) throw missingField(missing, check.required, Object.keys(fields).slice(0, 100))
  const faults = check.faults(fields)
  return faults instanceof Promise ? faults.then(refuseFirst) : refuseFirst(faults)
}

function refuseFirst([fault]: readonly SchemaProblem[]): void {
  if (fault) throw invalid(fault)
}

function invalid(fault: SchemaProblem) {
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
