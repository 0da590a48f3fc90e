import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { codeOf, svcError } from '@svc/core'
import type { Mount } from '@svc/core/contracts'
import { type Exchange, FRAMES, type Frames } from './plugin-pages.ts'

const PATH = '/console'
const FILES = `${PATH}/files/`
const METHODS = ['GET', 'HEAD']
/** Names that the build writes: a title, a digest, and one of these types. */
const NAME = /^[A-Za-z0-9_-]{1,80}\.(?:js|css|svg|woff2)$/
const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}
const HTML = 'text/html; charset=utf-8'
const A_YEAR = 31_536_000

/**
 * The page runs only its own scripts, makes no elements from text, and connects only to its own server. The one name of trusted types
 * gives out the address of the worker that lays out graphs, and no other.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "frame-src 'self'",
  "require-trusted-types-for 'script'",
  'trusted-types svc-worker',
].join('; ')

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
}

/** Time after which the server disconnects a client that reads nothing. */
const STALL_MS = 60_000

/** The page at `/console` and below. `assets` has the built files; each is read at its request. `frames` sends the pages of plugins. */
export function createConsolePage(assets: URL, frames: Frames): Mount {
  return {
    path: PATH,
    home: true,
    untraced: true,
    sandboxed: FRAMES.slice(0, -1),
    async handle(request, response, ctx) {
      const { method = 'GET' } = request
      if (!METHODS.includes(method)) {
        response.setHeader('Allow', METHODS.join(', '))
        throw methodNotAllowed(method)
      }
      const path = (request.url ?? PATH).split('?', 1)[0]!
      if (path.startsWith(FRAMES)) return frames.send(path.slice(FRAMES.length), { request, response, ctx })
      for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value)
      if (path.startsWith(FILES)) return sendFile(assets, path.slice(FILES.length), { request, response, ctx })
      // every other path is a place in the page
      return sendPage(assets, request, response)
    },
  }
}

/** Sends a file with a digest in its name, which never changes. */
async function sendFile(assets: URL, name: string, { request, response, ctx }: Exchange): Promise<void> {
  if (!NAME.test(name)) throw fileUnknown(name)
  const plain = new URL(`files/${name}`, assets)
  const packed = new URL(`files/${name}.gz`, assets)
  const isPacked = takesGzip(request) && (await sizeOf(packed)) !== undefined
  const size = await sizeOf(isPacked ? packed : plain)
  if (size === undefined) throw fileUnknown(name)
  response.setHeader('Cache-Control', `public, max-age=${A_YEAR}, immutable`)
  response.setHeader('ETag', `"${name}"`)
  response.appendHeader('Vary', 'Accept-Encoding')
  if (request.headers['if-none-match'] === `"${name}"`) return void response.writeHead(304).end()
  const encoding = isPacked ? { 'Content-Encoding': 'gzip' } : {}
  response.writeHead(200, { 'Content-Type': TYPES[extname(name)], 'Content-Length': size, ...encoding })
  if (request.method === 'HEAD') return void response.end()
  response.setTimeout(STALL_MS, () => response.destroy())
  await pipeline([createReadStream(isPacked ? packed : plain), response], { signal: ctx.signal })
}

async function sizeOf(file: URL): Promise<number | undefined> {
  try {
    return (await stat(file)).size
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Sends the page, which is small and always checked for a newer one. */
async function sendPage(assets: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.setHeader('Cache-Control', 'private, no-cache')
  const html = await textOf(new URL('index.html', assets))
  if (html === undefined) return sendWaiting(assets, request, response)
  const tag = `"${/files\/index-([A-Za-z0-9_-]+)\.js/.exec(html)?.[1] ?? html.length}"`
  response.setHeader('ETag', tag)
  if (request.headers['if-none-match'] === tag) return void response.writeHead(304).end()
  response.writeHead(200, { 'Content-Type': HTML, 'Content-Length': Buffer.byteLength(html) })
  response.end(request.method === 'HEAD' ? undefined : html)
}

async function textOf(file: URL): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** In a checkout, `npm start` builds the page beside the server. A published package contains it. */
async function sendWaiting(assets: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const failure = await textOf(new URL('failed.txt', assets))
  const title = failure === undefined ? 'The console is being built' : 'The console could not be built'
  const text =
    failure === undefined
      ? 'This takes a few seconds after the first start of a checkout. The page loads by itself.'
      : 'Run <code>npm run console</code> in the checkout; it prints the problem.'
  const refresh = failure === undefined ? '<meta http-equiv="refresh" content="2">' : ''
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">${refresh}<title>${title}</title></head><body><main><h1>${title}</h1><p>${text}</p></main></body></html>`
  response.writeHead(503, { 'Content-Type': HTML, 'Content-Length': Buffer.byteLength(html), 'Retry-After': '2' })
  response.end(request.method === 'HEAD' ? undefined : html)
}

const takesGzip = ({ headers }: IncomingMessage) =>
  /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(String(headers['accept-encoding'] ?? ''))

const fileUnknown = (name: string) => svcError('NOT_FOUND', `the console has no file ${name.slice(0, 200)}`)

const methodNotAllowed = (method: string) =>
  svcError('METHOD_NOT_ALLOWED', `the page does not support ${method}; use ${METHODS.join(' or ')}`, {
    details: { allowed: METHODS },
  })
