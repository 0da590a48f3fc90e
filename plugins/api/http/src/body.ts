import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { parse as parseForm } from 'node:querystring'
import { createStepBatcher, type SchemaProblem, type JsonSchema, messageOf, schema } from '@svc/core'
import type { Json, Route } from '@svc/core/contracts'
import { type ParametersCheck, toolSchema } from '@svc/plugin-kit/tool-schema'
import type { Bound, SchemaCheck, Checks, Context, Fields, Middleware, RequestState } from './context.ts'
import type { BodyMemory, Separators, TakeChunk } from './body-memory.ts'
import { invalidValue, missingField, payloadTooLarge, unsupportedMediaType } from './errors.ts'

type Kind = NonNullable<Route['accepts']>
type Parsed = Exclude<Kind, 'bytes'>

/** A route that accepts bytes takes any media type. */
const MEDIA_TYPES: Readonly<Record<Parsed, string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  text: 'text/plain',
}
const DEEPEST = 100
/** If Content-Length exceeds the limit by this factor, the server closes the connection instead of reading the body. */
const HOPELESS = 16
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Reads the body of a route that accepts one, up to the limit of the route or else `defaultLimit` bytes, and parses JSON and forms. Throws PAYLOAD_TOO_LARGE,
 * UNSUPPORTED_MEDIA_TYPE, INVALID_VALUE, UNAVAILABLE.
 */
export function createBody(defaultLimit: number, memory: BodyMemory): Middleware {
  const together = createStepBatcher() // batches the steps after each body
  return async (ctx, next) => {
    const { headers } = ctx.req
    const coding = headers['transfer-encoding']
    if (coding !== undefined && coding.toLowerCase() !== 'chunked') throw encoded(ctx, coding)
    const { route } = ctx.state.route ?? {}
    if (!route || !takesBody(route)) return next()
    const kind = route.accepts ?? 'json'
    if (isEmpty(ctx.req)) {
      takeEmpty(ctx, kind, route.rawBody)
      return next()
    }
    const limit = limitOf(ctx.state.route!, defaultLimit)
    mustBe(kind, headers)
    const length = headers['content-length']
    const declared = length === undefined ? undefined : Number(length)
    if (declared !== undefined && declared > limit) throw tooLarge(ctx, declared, limit)
    const take = memory.open(ctx.state, declared, SEPARATORS[kind])
    const bytes = await readBytes(ctx.req, limit, take)
    if (kind !== 'bytes') ctx.state.body = parsed(bytes, kind)
    if (kind === 'bytes' || route.rawBody) ctx.state.bytes = bytesOf(bytes)
    await new Promise<void>(together)
    return next()
  }
}

const SEPARATORS: Readonly<Record<Kind, Separators>> = { json: 'json', form: 'form', text: 'none', bytes: 'none' }

/** Body limit for isolated plugins, which get a body in one message. */
const LONGEST_ISOLATED = 16 * 1024 * 1024
/** The same for a route that also gets the parsed body. */
const LONGEST_TWICE = LONGEST_ISOLATED / 2

function limitOf({ route: { bodyLimit, rawBody }, isIsolated }: Bound, defaultLimit: number): number {
  const limit = bodyLimit ?? defaultLimit
  return isIsolated ? Math.min(limit, rawBody ? LONGEST_TWICE : LONGEST_ISOLATED) : limit
}

const takesBody = ({ body, accepts, rawBody }: Route) => body !== undefined || accepts === 'bytes' || rawBody === true

/** Whether the request has no body, or an empty one that authentication has read. */
const isEmpty = ({ headers, readableEnded }: IncomingMessage) =>
  headers['content-length'] === '0' ||
  (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) ||
  readableEnded

function takeEmpty(ctx: Context, kind: Kind, rawBody = false) {
  if (kind === 'bytes' || rawBody) ctx.state.bytes = new Uint8Array()
  if (kind !== 'bytes') ctx.state.body = kind === 'text' ? '' : {}
}

/** Parses the bytes of a body. Throws INVALID_VALUE. */
function parsed(bytes: Buffer, kind: Parsed): RequestState['body'] {
  if (!isUtf8(bytes)) throw invalidValue('body', 'must be valid UTF-8')
  if (bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) throw invalidValue('body', 'must not begin with a byte order mark')
  const text = bytes.toString()
  if (kind === 'text') return text
  return kind === 'form' ? fieldsOf(text) : objectOf(text)
}

/** A plain Uint8Array with its own memory, because it can be sent to another process. */
const bytesOf = (buffer: Buffer) => new Uint8Array(buffer)

/**
 * Returns the fields of a form; a repeated field has a list of strings. URLSearchParams does not work here: it removes a leading `?`, and for each field without `=`
 * it searches the rest of the form, which takes seconds for 1 MB.
 */
function fieldsOf(form: string): Record<string, string | string[]> {
  try {
    decodeURIComponent(form)
  } catch {
    throw invalidValue('body', 'must be valid UTF-8, percent-encoded') // `parseForm` accepts `%FF`
  }
  const fields = parseForm(form, '&', '=', { maxKeys: 0 }) as Record<string, string | string[]> // an object without prototype
  delete fields.__proto__
  return { ...fields }
}

/** Parses a JSON object. An empty text is an empty object. */
function objectOf(text: string): RequestState['body'] {
  const value: Json = text === '' ? {} : valueOf(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidValue('body', 'must be a JSON object')
  clean(value, 1)
  return value
}

function valueOf(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch (error) {
    throw invalidValue('body', `must be valid JSON: ${messageOf(error).slice(0, 200)}`)
  }
}

/** Limits the depth, so that recursive code does not overflow the stack. Removes `__proto__`: code that copies the fields would set a prototype. */
function clean(value: object, depth: number): void {
  if (depth > DEEPEST) throw invalidValue('body', `must not be nested deeper than ${DEEPEST} levels`)
  if (Object.hasOwn(value, '__proto__')) Reflect.deleteProperty(value, '__proto__')
  for (const child of Array.isArray(value) ? value : Object.values(value))
    if (typeof child === 'object' && child !== null) clean(child, depth + 1)
}

/** Reads the bytes of a body. `take` counts each chunk before it is kept. */
function readBytes(req: IncomingMessage, limit: number, take: TakeChunk): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const fail = (error: unknown) => {
      req.removeAllListeners('data').resume()
      reject(error as Error)
    }
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) return fail(payloadTooLarge(limit))
      try {
        take(chunk)
        chunks.push(chunk)
      } catch (error) {
        fail(error)
      }
    })
    req.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    req.on('error', reject)
  })
}

/** The end of a body with an unknown transfer coding is unknown, so the connection closes and nothing after it counts as a request. */
function encoded(ctx: Context, coding: string) {
  ctx.set('Connection', 'close')
  if (!/chunked\s*$/i.test(coding)) return invalidValue('transfer-encoding', 'must end with chunked')
  return unsupportedMediaType(`the body is sent with the transfer coding ${coding.slice(0, 100)}`)
}

function tooLarge(ctx: Context, declared: number, limit: number) {
  if (declared > limit * HOPELESS) ctx.set('Connection', 'close')
  return payloadTooLarge(limit)
}

function mustBe(kind: Kind, headers: IncomingMessage['headers']): void {
  const type = headers['content-type']
  const coding = headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') throw unsupportedMediaType('the body is compressed')
  if (coding !== undefined) headers['content-encoding'] = 'identity' // the parser accepts only lower case
  if (kind === 'bytes' || type === MEDIA_TYPES[kind]) return
  if (type === undefined) throw unsupportedMediaType('the body has no Content-Type', MEDIA_TYPES[kind])
  if (type.includes(',')) throw invalidValue('content-type', 'is given more than once')
  if (!isUtf8Type(type, MEDIA_TYPES[kind])) throw wrongType(kind)
}

function isUtf8Type(type: string, wanted: string): boolean {
  const [media, ...parameters] = type.split(';').map(part => part.trim().toLowerCase())
  const charset = parameters
    .find(parameter => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '')
  return media === wanted && (charset === undefined || charset === 'utf-8' || charset === 'utf8')
}

const NAMES: Readonly<Record<Parsed, string>> = { json: 'JSON', form: 'a form', text: 'plain text' }

const wrongType = (kind: Parsed) => unsupportedMediaType(`the body is not declared as ${NAMES[kind]} in UTF-8`, MEDIA_TYPES[kind])

/** `isIsolated`: the schemas are untrusted, so their patterns run in an engine that cannot hang. */
export const createChecks = (route: Route, isIsolated: boolean): Checks => ({
  body: route.accepts === 'bytes' ? undefined : checkOf(route.body, isIsolated),
  query: checkOf(route.query, isIsolated),
})

/** Keywords that, without `required` and defaults, leave an empty object as it is. */
const PLAIN: ReadonlySet<string> = new Set(['type', 'properties', 'required', 'additionalProperties', 'title', 'description'])

function checkOf(json: JsonSchema | undefined, isIsolated: boolean): SchemaCheck | undefined {
  if (json === undefined) return undefined
  const { required = [], properties = {} } = (typeof json === 'object' ? json : {}) as {
    required?: string[]
    properties?: Record<string, { type?: string }>
  }
  const typed = Object.entries(properties).filter(([, { type }]) => type === 'integer' || type === 'number' || type === 'boolean')
  return {
    problems: isIsolated ? isolatedProblems(json) : ownProblems(json),
    required,
    acceptsNothing: acceptsNothing(json),
    typed: new Map(typed.map(([name, { type }]) => [name, type!])),
    known: new Set(Object.keys(properties)),
  }
}

function ownProblems(json: JsonSchema): SchemaCheck['problems'] {
  const own = schema(json, { problems: 'first' })
  return fields => own.check(fields)
}

/** Whether a schema certainly accepts an empty object, and adds nothing to it. */
function acceptsNothing(json: JsonSchema): boolean {
  if (typeof json !== 'object' || !Object.keys(json).every(key => PLAIN.has(key))) return false
  const { type, required, properties } = json as { readonly [key: string]: unknown }
  const isObject = type === 'object' || type === undefined
  const isEmpty = required === undefined || (Array.isArray(required) && required.length === 0)
  return isObject && isEmpty && Object.values(Object(properties)).every(one => Object(one).default === undefined)
}

function isolatedProblems(json: JsonSchema): SchemaCheck['problems'] {
  let made: Promise<ParametersCheck> | undefined
  return async fields => (await (made ??= toolSchema(json))).check(fields, 'first')
}

/** Checks query and body against the schemas of the route. Throws MISSING_FIELD, INVALID_VALUE. */
export const validation: Middleware = async (ctx, next) => {
  const { query, body } = ctx.state.route?.checks ?? {}
  if (ctx.state.route && ctx.querystring !== '') ctx.state.query = parseQuery(ctx.querystring, query?.known)
  // most requests have no query, and the first check of a schema compiles it
  const isChecked = query && !(query.acceptsNothing && ctx.querystring === '')
  const queryCheck = isChecked ? validate(query, typedQuery(query, ctx.state.query)) : undefined
  if (queryCheck) await queryCheck // a promise only for isolated plugins
  const bodyCheck = body && validate(body, ctx.state.body as Fields)
  if (bodyCheck) await bodyCheck
  return next()
}

function validate(check: SchemaCheck, fields: Fields): void | Promise<void> {
  const missing = check.required.filter(name => !Object.hasOwn(fields, name))
  if (missing.length > 0) throw missingField(missing, check.required, Object.keys(fields).slice(0, 100))
  const problems = check.problems(fields)
  return problems instanceof Promise ? problems.then(refuseFirst) : refuseFirst(problems)
}

function refuseFirst([problem]: readonly SchemaProblem[]): void {
  if (problem) throw problem.keyword === 'unknown' ? unknownName(problem) : invalid(problem)
}

/** A name that a closed schema does not know: a query parameter, or a field of the body. */
function unknownName({ path, allowed = [], nearest }: SchemaProblem) {
  const reason = nearest === undefined ? 'is not known here' : `is not known here; did you mean "${nearest}"?`
  return invalidValue(path.slice(0, 100), reason, { allowed })
}

function invalid(problem: SchemaProblem) {
  const value = isShort(problem.value) ? { value: problem.value } : {}
  return invalidValue(problem.path || 'body', problem.message, {
    ...value,
    ...(problem.allowed ? { allowed: problem.allowed } : {}),
  })
}

const isShort = (value: unknown) =>
  (typeof value === 'string' ? value.length <= 200 : value !== undefined && typeof value !== 'object') || value === null

/** Parses the query. A parameter of the schema must not appear twice; of another repeated parameter the first value counts. */
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

/** Converts query values to numbers and booleans where the schema requires them. */
function typedQuery({ typed }: SchemaCheck, query: Readonly<Record<string, string>>): Fields {
  if (typed.size === 0) return { ...query }
  return Object.fromEntries(Object.entries(query).map(([name, text]) => [name, typedValue(typed.get(name), text)]))
}

function typedValue(type: string | undefined, text: string): unknown {
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  return type !== undefined && /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
}
