import type { Json, RouteReply, RouteRequest } from '@svc/core/contracts'
import type { Answer } from './errors.ts'
import type { Exchange } from './exchange.ts'

const JSON_TYPE = 'application/json; charset=utf-8'
const TEXT_TYPE = 'text/plain; charset=utf-8'

/** A request as its route sees it. */
export function requestOf(x: Exchange): RouteRequest {
  return { params: x.params, query: x.query, headers: headersOf(x), body: x.body }
}

function headersOf({ req }: Exchange): Readonly<Record<string, string>> {
  const cookies = req.headers['set-cookie']
  // Node joins all repeated headers but this one into text
  return (cookies ? { ...req.headers, 'set-cookie': cookies.join(', ') } : req.headers) as Record<string, string>
}

/** Writes an answer in one piece. */
export function sendReply(x: Exchange, { status, headers, body, text }: RouteReply): void {
  if (x.gone || x.res.headersSent) return
  const out = x.headers.slice()
  if (x.life.draining) out.push('Connection', 'close')
  for (const name in headers) out.push(name, headers[name]!)
  if (body !== undefined) return sendText(x, status ?? 200, out, JSON_TYPE, JSON.stringify(body))
  if (text !== undefined) return sendText(x, status ?? 200, out, hasType(headers) ? undefined : TEXT_TYPE, text)
  sendEmpty(x, status ?? 204, out)
}

const hasType = (headers: Readonly<Record<string, string>> = {}) =>
  Object.keys(headers).some(name => name.toLowerCase() === 'content-type')

/** What is larger than a socket's buffer may find a reader that takes nothing. */
const LARGE = 65_536

function sendText({ res, life }: Exchange, status: number, headers: string[], type: string | undefined, text: string) {
  if (type) headers.push('Content-Type', type)
  headers.push('Content-Length', String(Buffer.byteLength(text)))
  res.writeHead(status, headers)
  res.end(text)
  if (text.length > LARGE) res.setTimeout(life.stallMs, () => res.destroy())
}

function sendEmpty({ res }: Exchange, status: number, headers: string[]) {
  if (status !== 204 && status !== 304) headers.push('Content-Length', '0')
  res.writeHead(status, headers)
  res.end()
}

/** Writes the error record. */
export function sendError(x: Exchange, { status, record, retryAfter }: Answer): void {
  x.refused = record.error_code
  if (retryAfter !== undefined) x.headers.push('Retry-After', String(retryAfter))
  sendReply(x, { status, body: record as unknown as Json })
}
