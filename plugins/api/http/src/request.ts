import { createStepBatcher } from '@svc/core'
import type { Addresses } from './address.ts'
import { createState, type Life, type Middleware } from './context.ts'
import { stopping } from './errors.ts'

/** Outermost: the state of the request, the headers of every answer, and the moment at which Koa sends it. */
export function begin(common: Readonly<Record<string, string>>, life: Life): Middleware {
  const together = createStepBatcher() // the ends of answers
  const headers = new Map(Object.entries(common))
  return async (ctx, next) => {
    ctx.state = createState()
    ctx.url = originForm(ctx.url)
    ctx.res.setHeaders(headers)
    await next()
    if (ctx.respond === false) return
    if (life.draining) ctx.set('Connection', 'close')
    await new Promise<void>(together)
  }
}

/** A request line may name the whole URL, as to a proxy: only path and query matter. `#` and white space are part of the path, as they came. */
function originForm(url: string): string {
  const target = url.startsWith('/') ? url : (/^https?:\/\/[^/?#]*([^#]*)/i.exec(url)?.[1] ?? url)
  const rooted = target.startsWith('/') ? target : `/${target}`
  return /[#\s]/.test(rooted) ? rooted.replaceAll(/[#\s]/g, encodeURIComponent) : rooted
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Takes the caller's request id where it is valid, else makes one. Each answer carries it. */
export const requestId: Middleware = (ctx, next) => {
  const given = ctx.req.headers['x-request-id']
  ctx.state.requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : crypto.randomUUID()
  ctx.set('X-Request-Id', ctx.state.requestId)
  return next()
}

const TRACE = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const LONGEST_STATE = 512
const VISIBLE = /^[\x20-\x7e]+$/

/** Takes up a W3C trace: calls on behalf of the request carry it on. */
export const trace: Middleware = (ctx, next) => {
  const { state } = ctx
  const { traceparent: given, tracestate } = ctx.req.headers
  if (typeof given === 'string' && TRACE.test(given)) {
    state.trace = given
    if (typeof tracestate === 'string') state.traceState = traceStateOf(tracestate)
  }
  state.callContext = { signal: state.ending.signal, principal: state.principal, requestId: state.requestId }
  return next()
}

/** The standard shortens a state that is too long by whole entries, the oldest first. */
function traceStateOf(given: string): string | undefined {
  const end = given.length <= LONGEST_STATE ? given.length : given.lastIndexOf(',', LONGEST_STATE)
  const state = given.slice(0, Math.max(0, end))
  return VISIBLE.test(state) ? state : undefined
}

/** Notes the client's address. */
export const address =
  ({ clientOf }: Pick<Addresses, 'clientOf'>): Middleware =>
  (ctx, next) => {
    ctx.state.address = clientOf(ctx.req)
    return next()
  }

/** A server that ends takes nothing new on the connections that are still open; one with a successor answers until they are idle. */
export const leaving =
  (life: Life): Middleware =>
  (ctx, next) => {
    if (life.ending && !ctx.state.route?.route.uncounted) throw stopping()
    return next()
  }
