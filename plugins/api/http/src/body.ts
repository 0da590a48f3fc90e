import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import { parse as parseForm } from 'node:querystring'
import { createStepBatcher, type SchemaProblem, type JsonSchema, messageOf, schema } from '@svc/core'
import type { Route } from '@svc/core/contracts'
import { type ToolSchema, toolSchema } from '@svc/plugin-kit/tool-schema'
import type bodyParser from 'koa-bodyparser'
import type { Check, Checks, Context, Fields, Middleware } from './context.ts'
import { invalidValue, missingField, payloadTooLarge, unsupportedMediaType } from './errors.ts'

// loaded with the first body: loading it takes as long as all else that this plugin needs
const loadParser = () => createRequire(import.meta.url)('koa-bodyparser') as typeof bodyParser

type Kind = NonNullable<Route['accepts']>
type Parsed = Exclude<Kind, 'bytes'>

/** A route that accepts bytes takes any media type. */
const MEDIA_TYPES: Readonly<Record<Parsed, string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  text: 'text/plain',
}
const DEEPEST = 100
/** The server does not read a body that is declared so many times too large: it closes the connection. */
const HOPELESS = 16
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Reads the body of a route that wants one, up to the limit of the route or else `usual` bytes. koa-bodyparser reads JSON, forms and text; a route that accepts
 * bytes gets them as they came. Throws PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, INVALID_VALUE.
 */
export function createBody(usual: number): Middleware {
  const parserOf = createParsers()
  const together = createStepBatcher() // what follows on a body
  return async (ctx, next) => {
    const { headers } = ctx.req
    const coding = headers['transfer-encoding']
    if (coding !== undefined && coding.toLowerCase() !== 'chunked') throw encoded(ctx, coding)
    const { route } = ctx.state.route ?? {}
    if (route?.body === undefined && route?.accepts !== 'bytes') return next()
    const kind = route.accepts ?? 'json'
    const declared = headers['content-length']
    if (declared === '0' || (declared === undefined && coding === undefined)) {
      takeEmpty(ctx, kind)
      return next()
    }
    const limit = route.bodyLimit ?? usual
    mustBe(kind, headers)
    if (Number(declared) > limit) throw tooLarge(ctx, Number(declared), limit)
    if (kind === 'bytes') ctx.state.bytes = await readBytes(ctx.req, limit)
    else await parse(ctx, kind, limit, parserOf(kind, limit))
    await new Promise<void>(together)
    return next()
  }
}

function takeEmpty(ctx: Context, kind: Kind) {
  if (kind === 'bytes') ctx.state.bytes = new Uint8Array()
  else ctx.request.body = kind === 'text' ? '' : {}
}

/** One koa-bodyparser for each kind of body and limit: its options are fixed when it is made. */
function createParsers() {
  const made = new Map<string, Middleware>()
  return (kind: Parsed, limit: number): Middleware => {
    const key = `${kind} ${limit}`
    const known = made.get(key)
    if (known) return known
    const bytes = String(limit)
    // `mustBe` has looked at the media type, by stricter rules; scalars have an answer of their own. A form is read as text: the parser's own fields are paths into an
    // object, the 1,001st is dropped, and so is one that is called `constructor`. The last one is an option of co-body.
    const options = {
      enableTypes: [kind === 'json' ? 'json' : 'text'],
      extendTypes: { text: [MEDIA_TYPES.form] },
      detectJSON: () => kind === 'json',
      jsonLimit: bytes,
      textLimit: bytes,
      strict: false,
      onProtoPoisoning: 'remove',
    } satisfies bodyParser.Options & { onProtoPoisoning: string }
    const parser = loadParser()(options) as Middleware
    made.set(key, parser)
    return parser
  }
}

/**
 * The parser repairs invalid UTF-8 and drops a byte order mark, so the bytes themselves are kept and looked at. Their listener must be there in the same turn as
 * the parser's own.
 */
async function parse(ctx: Context, kind: Parsed, limit: number, parser: Middleware): Promise<void> {
  const { req, request } = ctx
  const chunks: Buffer[] = []
  const keep = (chunk: Buffer) => void chunks.push(chunk)
  req.on('data', keep)
  const failure = await failureOf(() => parser(ctx, async () => {}))
  req.off('data', keep)
  if (statusOf(failure) === 413) {
    req.resume() // the parser stopped reading: without the rest no request on this connection would be answered any more
    throw payloadTooLarge(limit)
  }
  if (failure && !(failure instanceof SyntaxError)) throw failure
  checkBytes(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), kind)
  if (failure) throw invalidValue('body', `must be valid JSON: ${messageOf(failure).slice(0, 200)}`)
  if (request.rawBody === undefined) throw wrongType(kind) // it could not read the media type
  if (kind === 'form') request.body = fieldsOf(request.body as string)
  if (kind === 'json') checkJson(request.rawBody === '' ? (request.body = {}) : request.body)
}

/**
 * The fields of a form; one that comes more than once has a list of texts. URLSearchParams takes a leading `?` away, and searches the rest of the form for the `=` of
 * each field that has none: seconds for a form of 1 MB.
 */
function fieldsOf(form: string): Record<string, string | string[]> {
  const fields = parseForm(form, '&', '=', { maxKeys: 0 }) as Record<string, string | string[]> // it has no prototype
  delete fields.__proto__
  return { ...fields }
}

async function failureOf(work: () => Promise<unknown>): Promise<Error | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    return error as Error
  }
}

const statusOf = (error: unknown) => (Object(error) as { status?: unknown }).status

function checkBytes(bytes: Buffer, kind: Parsed): void {
  if (!isUtf8(bytes)) throw invalidValue('body', 'must be valid UTF-8')
  if (bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) throw invalidValue('body', 'must not begin with a byte order mark')
  if (kind !== 'form') return
  try {
    decodeURIComponent(bytes.toString())
  } catch {
    throw invalidValue('body', 'must be valid UTF-8, percent-encoded') // the parser takes `%FF` for text
  }
}

function checkJson(value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidValue('body', 'must be a JSON object')
  checkDepth(value, 1)
}

/** Code that walks a body must not run out of stack. */
function checkDepth(value: object, depth: number): void {
  if (depth > DEEPEST) throw invalidValue('body', `must not be nested deeper than ${DEEPEST} levels`)
  for (const member of Array.isArray(value) ? value : Object.values(value))
    if (typeof member === 'object' && member !== null) checkDepth(member, depth + 1)
}

/** The body of a route that accepts bytes, as it came. */
function readBytes(req: IncomingMessage, limit: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= limit) chunks.push(chunk)
      else reject(payloadTooLarge(limit))
    })
    // plain, and with memory of its own: it may cross to another process
    req.on('end', () => resolve(new Uint8Array(Buffer.concat(chunks))))
    req.on('error', reject)
  })
}

/** The end of such a body is unknown: nothing that follows it on the connection is taken for a request. */
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
  if (coding !== undefined) headers['content-encoding'] = 'identity' // the parser knows the word in lower case only
  if (kind === 'bytes' || type === MEDIA_TYPES[kind]) return
  if (type === undefined) throw unsupportedMediaType('the body has no Content-Type', MEDIA_TYPES[kind])
  if (type.includes(',')) throw invalidValue('content-type', 'is given more than once')
  if (!isUtf8Type(type, MEDIA_TYPES[kind])) throw wrongType(kind)
}

function isUtf8Type(type: string, wanted: string): boolean {
  const [media, ...parameters] = type.split(';').map(part => part.trim().toLowerCase())
  const charset = parameters
    .find(one => one.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '')
  return media === wanted && (charset === undefined || charset === 'utf-8' || charset === 'utf8')
}

const NAMES: Readonly<Record<Parsed, string>> = { json: 'JSON', form: 'a form', text: 'plain text' }

const wrongType = (kind: Parsed) => unsupportedMediaType(`the body is not declared as ${NAMES[kind]} in UTF-8`, MEDIA_TYPES[kind])

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

/** The first value of an unknown parameter counts. A known parameter must not appear twice. */
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
