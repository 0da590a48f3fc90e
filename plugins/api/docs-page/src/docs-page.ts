import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { type CallContext, svcError } from '@svc/core'
import type { Mount } from '@svc/core/contracts'

/** A file of the page in `assets`. */
interface PageFile {
  readonly name: string
  readonly type: string
  /** The file in `assets` is compressed. */
  readonly gzip?: true
}

const PATH = '/docs'
const HTML: PageFile = { name: 'page.html', type: 'text/html; charset=utf-8' }
const SCRIPT = 'text/javascript; charset=utf-8'
const FILES: ReadonlyMap<string, PageFile> = new Map([
  [PATH, HTML],
  [`${PATH}/`, HTML],
  [`${PATH}/start.js`, { name: 'start.js', type: SCRIPT }],
  [`${PATH}/api-reference.js`, { name: 'api-reference.js.gz', type: SCRIPT, gzip: true }],
])
const METHODS = ['GET', 'HEAD']

/** The page runs only its own scripts and connects only to its own server. Its library adds inline styles. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Time after which the server disconnects a client that reads nothing. */
const STALL_MS = 60_000

/** The page at `/docs`, which shows `/openapi.json`. It reads each file at its request and caches nothing. */
export function createDocsPage(): Mount {
  return {
    path: PATH,
    scope: 'read',
    guide: true,
    async handle(request, response, ctx) {
      const { pathname } = new URL(request.url ?? PATH, 'http://page')
      const file = FILES.get(pathname)
      if (!file) throw fileUnknown(pathname)
      const { method = 'GET' } = request
      if (METHODS.includes(method)) return await send(file, request, response, ctx)
      response.setHeader('Allow', METHODS.join(', '))
      throw methodNotAllowed(method, METHODS)
    },
  }
}

async function send({ name, type, gzip }: PageFile, request: IncomingMessage, response: ServerResponse, { signal }: CallContext) {
  const url = new URL(`../assets/${name}`, import.meta.url)
  const { size, mtimeMs } = await stat(url)
  const tag = `"${size.toString(36)}-${Math.floor(mtimeMs).toString(36)}"`
  const packed = gzip === true && takesGzip(request)
  const length = packed || !gzip ? { 'Content-Length': size } : {}
  const headers = { 'Content-Security-Policy': POLICY, 'Cache-Control': 'private, no-cache', ETag: tag }
  for (const [header, value] of Object.entries(headers)) response.setHeader(header, value)
  response.appendHeader('Vary', 'Accept-Encoding')
  if (request.headers['if-none-match'] === tag) return void response.writeHead(304).end()
  response.writeHead(200, { 'Content-Type': type, ...length, ...(packed ? { 'Content-Encoding': 'gzip' } : {}) })
  if (request.method === 'HEAD') return void response.end()
  response.setTimeout(STALL_MS, () => response.destroy())
  const unpack = gzip === true && !packed ? [(await import('node:zlib')).createGunzip()] : []
  await pipeline([createReadStream(url), ...unpack, response], { signal })
}

const takesGzip = ({ headers }: IncomingMessage) =>
  /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(String(headers['accept-encoding'] ?? ''))

const fileUnknown = (path: string) => svcError('NOT_FOUND', `the page has no file ${path.slice(0, 200)}`)

const methodNotAllowed = (method: string, allowed: readonly string[]) =>
  svcError('METHOD_NOT_ALLOWED', `the page does not support ${method}; use ${allowed.join(' or ')}`, { details: { allowed } })
