import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { createTogether, messageOf, type Together } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import { invalidValue, payloadTooLarge, unsupportedMediaType } from './errors.ts'
import type { Exchange, Gate } from './exchange.ts'

const DEEPEST = 100
/** A body so many times too large is not even read to its end: the connection is closed. */
const HOPELESS = 16

/** The gate of the body: at most so many bytes of JSON, an object. Throws PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, INVALID_VALUE. */
export function createBody(usual: number): Gate {
  const together = createTogether() // all that follows on a body
  return x => {
    const { headers } = x.req
    const coding = headers['transfer-encoding']
    if (coding !== undefined && coding.toLowerCase() !== 'chunked') throw encoded(x, coding)
    if (x.route?.checks.body === undefined) return
    const declared = headers['content-length']
    if (declared === '0' || (declared === undefined && coding === undefined)) return void (x.body = {})
    mustBeJson(headers)
    const limit = x.route.route.bodyLimit ?? usual
    if (Number(declared) > limit) throw tooLarge(x, Number(declared), limit)
    return readBytes(x.req, limit, together).then(bytes => void (x.body = bytes.length === 0 ? {} : parseBody(bytes)))
  }
}

/** Where such a body ends is not ours to say: nothing that follows it on the connection is taken for a request. */
function encoded(x: Exchange, coding: string) {
  x.headers.push('Connection', 'close')
  if (!/chunked\s*$/i.test(coding)) return invalidValue('transfer-encoding', 'must end with chunked')
  return unsupportedMediaType(`the body is sent with the transfer coding ${coding.slice(0, 100)}`)
}

function tooLarge(x: Exchange, declared: number, limit: number) {
  if (declared > limit * HOPELESS) x.headers.push('Connection', 'close')
  return payloadTooLarge(limit)
}

function mustBeJson(headers: IncomingMessage['headers']) {
  const type = headers['content-type']
  const coding = headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') throw unsupportedMediaType('the body is compressed')
  if (type === 'application/json') return
  if (type === undefined) throw unsupportedMediaType('the body has no Content-Type')
  if (type.includes(',')) throw invalidValue('content-type', 'is given more than once')
  if (!isJson(type)) throw unsupportedMediaType('the body is not declared as JSON in UTF-8')
}

function isJson(type: string): boolean {
  const [media, ...parameters] = type.split(';').map(part => part.trim().toLowerCase())
  const charset = parameters
    .find(one => one.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '')
  return media === 'application/json' && (charset === undefined || charset === 'utf-8' || charset === 'utf8')
}

function readBytes(req: IncomingMessage, limit: number, together: Together): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= limit) chunks.push(chunk)
      else reject(payloadTooLarge(limit))
    })
    req.on('end', () => together(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))))
    req.on('error', reject)
  })
}

function parseBody(bytes: Buffer): Json {
  if (!isUtf8(bytes)) throw invalidValue('body', 'must be valid UTF-8')
  const value = parseJson(bytes.toString('utf8'))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidValue('body', 'must be a JSON object')
  clean(value, 1)
  return value
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch (error) {
    throw invalidValue('body', `must be valid JSON: ${messageOf(error).slice(0, 200)}`)
  }
}

/** Whoever copies a body by assignment must not get another prototype from it, and whoever walks it must not run out of stack. */
function clean(value: object, depth: number) {
  if (depth > DEEPEST) throw invalidValue('body', `must not be nested deeper than ${DEEPEST} levels`)
  if (Object.hasOwn(value, '__proto__')) Reflect.deleteProperty(value, '__proto__')
  for (const member of Array.isArray(value) ? value : Object.values(value))
    if (typeof member === 'object' && member !== null) clean(member, depth + 1)
}
