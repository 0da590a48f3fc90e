import { show } from '@svc/core'
import type { Json, RouteReply, RouteRequest } from '@svc/core/contracts'
import { type Answer, answerInvalid } from './errors.ts'
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
  for (const name in headers) put(out, x.life.headers.length, name, headers[name]!)
  if (body !== undefined) return sendText(x, status ?? 200, out, hasType(headers) ? undefined : JSON_TYPE, JSON.stringify(body))
  if (text !== undefined) return sendText(x, status ?? 200, out, hasType(headers) ? undefined : TEXT_TYPE, text)
  sendEmpty(x, status ?? 204, out)
}

/** A route's own word replaces what every answer carries (a page has a policy of its own), but for `Vary`, which adds up. */
export function put(out: string[], common: number, name: string, value: string) {
  const wanted = name.toLowerCase()
  for (let at = 0; at < common && wanted !== 'vary'; at += 2)
    if (out[at]!.toLowerCase() === wanted) return void (out[at + 1] = value)
  out.push(name, value)
}

const hasType = (headers: Readonly<Record<string, string>> = {}) =>
  Object.keys(headers).some(name => name.toLowerCase() === 'content-type')

/** What is larger than a socket's buffer may find a reader that takes nothing. */
const LARGE = 65_536

function sendText({ res, life }: Exchange, status: number, headers: string[], type: string | undefined, text: string) {
  if (type) headers.push('Content-Type', type)
  headers.push('Content-Length', String(Buffer.byteLength(text)))
  res.writeHead(status, headers)
  life.together(() => res.end(text))
  if (text.length > LARGE) res.setTimeout(life.stallMs, () => res.destroy())
}

function sendEmpty({ res }: Exchange, status: number, headers: string[]) {
  if (status !== 204 && status !== 304) headers.push('Content-Length', '0')
  res.writeHead(status, headers)
  res.end()
}

/** Takes what a route answered, whoever wrote the route. Throws ROUTE_ANSWER_INVALID. */
export function checkedReply(reply: RouteReply): RouteReply {
  if (typeof reply !== 'object' || reply === null) throw answerInvalid(show(reply))
  const { status = 200, text, body, headers } = reply
  if (!Number.isInteger(status) || status < 200 || status > 599) throw answerInvalid(`the status ${show(status)}`)
  if (text !== undefined && typeof text !== 'string') throw answerInvalid(`${show(text)} as its text`)
  if (typeof body === 'function' || typeof body === 'symbol') throw answerInvalid(`${show(body)} as its body`)
  if (headers !== undefined) checkHeaders(headers)
  return reply
}

function checkHeaders(headers: unknown) {
  if (typeof headers !== 'object' || headers === null) throw answerInvalid(`${show(headers)} as its headers`)
  for (const [name, value] of Object.entries(headers))
    if (typeof value !== 'string') throw answerInvalid(`${show(value)} as its header ${name}`)
}

/** Writes the error record. */
export function sendError(x: Exchange, { status, record, retryAfter }: Answer): void {
  x.refused = record.error_code
  if (retryAfter !== undefined) x.headers.push('Retry-After', String(retryAfter))
  sendReply(x, { status, body: record as unknown as Json })
}
