import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import { parse as parseForm } from 'node:querystring'
import { getHeapStatistics } from 'node:v8'
import { createStepBatcher, messageOf } from '@svc/core'
import type { Route } from '@svc/core/contracts'
import type bodyParser from 'koa-bodyparser'
import type { Bound, Context, Middleware, RequestState } from './context.ts'
import { invalidValue, payloadTooLarge, tooManyBodies, tooManyValues, unsupportedMediaType } from './errors.ts'

// loaded at the first body, because it takes as long to load as all other dependencies of this plugin together
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
/** If Content-Length exceeds the limit by this factor, the server closes the connection instead of reading the body. */
const HOPELESS = 16
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Reads the body of a route that accepts one, up to the limit of the route or else `defaultLimit` bytes. koa-bodyparser reads JSON, forms and text; a route that
 * accepts bytes gets the raw bytes. Throws PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, INVALID_VALUE, UNAVAILABLE.
 */
export function createBody(defaultLimit: number, memory: BodyMemory): Middleware {
  const parserOf = createParsers()
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
    const bytes = await (kind === 'bytes'
      ? readBytes(ctx.req, limit, take)
      : parse(ctx, { kind, limit, parser: parserOf(kind, limit), take }))
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
  if (kind !== 'bytes') ctx.request.body = kind === 'text' ? '' : {}
}

/** Creates one koa-bodyparser for each kind of body and limit, because its options are fixed when it is created. */
function createParsers() {
  const made = new Map<string, Middleware>()
  return (kind: Parsed, limit: number): Middleware => {
    const key = `${kind} ${limit}`
    const known = made.get(key)
    if (known) return known
    const bytes = String(limit)
    // `mustBe` has already checked the media type by stricter rules, and `checkJson` refuses scalars. The parser reads a form as text, because its form mode turns
    // names into object paths and drops field 1,001 and every field called `constructor`. `onProtoPoisoning` is an option of co-body.
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

interface ParseOptions {
  readonly kind: Parsed
  readonly limit: number
  readonly parser: Middleware
  /** Counts each chunk before it is kept. */
  readonly take: TakeChunk
}

/**
 * Parses the body and checks its raw bytes, because the parser repairs invalid UTF-8 and drops a byte order mark. The `data` listener must be added in the same
 * tick as the parser's own. Returns these bytes.
 */
async function parse(ctx: Context, { kind, limit, parser, take }: ParseOptions): Promise<Buffer> {
  const { req, request } = ctx
  const chunks: Buffer[] = []
  const refused = Promise.withResolvers<never>()
  const keep = (chunk: Buffer) => {
    try {
      take(chunk)
      chunks.push(chunk)
    } catch (error) {
      req.removeAllListeners('data').resume() // neither this function nor the parser keeps the rest
      refused.reject(error)
    }
  }
  req.on('data', keep)
  const failure = await Promise.race([failureOf(() => parser(ctx, async () => {})), refused.promise])
  req.off('data', keep)
  if (statusOf(failure) === 413) {
    req.resume() // the parser stopped reading, and an unread rest would block later requests on this connection
    throw payloadTooLarge(limit)
  }
  if (failure && !(failure instanceof SyntaxError)) throw failure
  const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  checkBytes(bytes, kind)
  if (failure) throw invalidValue('body', `must be valid JSON: ${messageOf(failure).slice(0, 200)}`)
  if (request.rawBody === undefined) throw wrongType(kind) // the parser did not recognize the media type
  if (kind === 'form') request.body = fieldsOf(request.body as string)
  if (kind === 'json') checkJson(request.rawBody === '' ? (request.body = {}) : request.body)
  delete request.rawBody // the text of a large body would stay in memory until the request ends
  return bytes
}

/** A plain Uint8Array with its own memory, because it can be sent to another process. */
const bytesOf = (buffer: Buffer) => new Uint8Array(buffer)

/**
 * Returns the fields of a form; a repeated field has a list of strings. URLSearchParams does not work here: it removes a leading `?`, and for each field without `=`
 * it searches the rest of the form, which takes seconds for 1 MB.
 */
function fieldsOf(form: string): Record<string, string | string[]> {
  const fields = parseForm(form, '&', '=', { maxKeys: 0 }) as Record<string, string | string[]> // an object without prototype
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
    throw invalidValue('body', 'must be valid UTF-8, percent-encoded') // the parser accepts `%FF`
  }
}

function checkJson(value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidValue('body', 'must be a JSON object')
  checkDepth(value, 1)
}

/** Limits the depth, so that recursive code does not overflow the stack. */
function checkDepth(value: object, depth: number): void {
  if (depth > DEEPEST) throw invalidValue('body', `must not be nested deeper than ${DEEPEST} levels`)
  for (const child of Array.isArray(value) ? value : Object.values(value))
    if (typeof child === 'object' && child !== null) checkDepth(child, depth + 1)
}

/** Reads the body of a route that accepts bytes. */
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
    req.on('end', () => resolve(Buffer.concat(chunks)))
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

// --- the memory of all bodies ---

/**
 * Limits the memory of the bodies of all open requests together. It is estimated from bytes and values: a list of empty lists takes ten times as much memory as
 * its text.
 */
interface BodyMemory {
  /**
   * Counts the body of a request, until the request ends. `declared`: the `Content-Length`. Throws PAYLOAD_TOO_LARGE for a body that never fits, and UNAVAILABLE
   * while other bodies take the memory.
   */
  open(state: RequestState, declared: number | undefined, separators: Separators): TakeChunk
}

/** Counts a chunk before it is kept. Throws PAYLOAD_TOO_LARGE, UNAVAILABLE. */
type TakeChunk = (chunk: Uint8Array) => void

/** What separates the values of a body. */
export type Separators = 'json' | 'form' | 'none'

/** Estimated bytes of memory for each byte of a body, which exists as text too while it is parsed. */
const PER_BYTE = 2
/** The same for each value. */
const PER_VALUE = 64
/** Limit of the values in one body. */
const MOST_VALUES = 2_000_000
/** Bodies up to this size are always accepted, so that large bodies do not block all others. */
const SMALL = 16_384
/** The part of the heap that bodies can take by default. */
const HEAP_PART = 3

/** `most`: estimated bytes. Default: a third of the largest possible heap. */
export function createBodyMemory(most: number = Math.floor(getHeapStatistics().heap_size_limit / HEAP_PART)): BodyMemory {
  let held = 0
  return {
    open(state, declared, separators) {
      const expected = (declared ?? 0) * PER_BYTE
      if (expected > most) throw payloadTooLarge(Math.floor(most / PER_BYTE))
      if (declared !== undefined && declared > SMALL && held + expected > most) throw tooManyBodies()
      const valuesIn = createValueCounter(separators)
      let mine = 0
      let values = 0
      state.freeBody = () => {
        held -= mine
        mine = 0
      }
      return chunk => {
        if (state.gone) return
        const more = valuesIn(chunk)
        values += more
        if (values > MOST_VALUES) throw tooManyValues(MOST_VALUES)
        const size = chunk.length * PER_BYTE + more * PER_VALUE
        mine += size
        held += size
        if (mine > most) throw payloadTooLarge(Math.floor(most / PER_BYTE))
        if (mine > SMALL * PER_BYTE && held > most) throw tooManyBodies()
      }
    },
  }
}

const [QUOTE, BACKSLASH, COMMA, LIST, OBJECT, AND] = [...Buffer.from('"\\,[{&')] as [
  number,
  number,
  number,
  number,
  number,
  number,
]

/** Counts the values of a body, chunk by chunk: not exactly, but never far too few. */
function createValueCounter(separators: Separators): (chunk: Uint8Array) => number {
  if (separators === 'json') return createJsonCounter()
  return separators === 'form' ? chunk => chunk.reduce((count, byte) => (byte === AND ? count + 1 : count), 0) : () => 0
}

/** Characters of a string without a quote or backslash after which a native search for the next quote is faster. */
const PLAIN = 64

/** Whether an odd number of backslashes is before this index. */
function isOddRun(chunk: Uint8Array, end: number): boolean {
  let first = end
  while (first > 0 && chunk[first - 1] === BACKSLASH) first--
  return (end - first) % 2 === 1
}

/** Counts commas and opening brackets outside of strings. */
function createJsonCounter(): (chunk: Uint8Array) => number {
  let isInString = false
  /** The next character is escaped. */
  let isEscaped = false

  /** Returns the index after the string, or the length of the chunk. Local variables are several times faster than those of the closure. */
  const skipString = (chunk: Uint8Array, start: number): number => {
    const { length } = chunk
    let escaped = isEscaped
    let plain = 0
    let at = start
    for (; isInString && at < length; at++) {
      const byte = chunk[at]
      if (escaped) escaped = false
      else if (byte === BACKSLASH) escaped = true
      else if (byte === QUOTE) isInString = false
      else if (++plain === PLAIN) {
        plain = 0
        const quote = chunk.indexOf(QUOTE, at)
        const end = quote < 0 ? length : quote
        escaped = isOddRun(chunk, end)
        at = end - 1
      }
    }
    isEscaped = escaped
    return at
  }
  return chunk => {
    let count = 0
    for (let at = 0; at < chunk.length; ) {
      if (isInString) {
        at = skipString(chunk, at)
        continue
      }
      const byte = chunk[at++]
      if (byte === QUOTE) isInString = true
      else if (byte === COMMA || byte === LIST || byte === OBJECT) count++
    }
    return count
  }
}
