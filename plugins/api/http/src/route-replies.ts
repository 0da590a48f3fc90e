import type { Log } from '@svc/core'
import { ROUTE_HEADERS, type RouteReply } from '@svc/core/contracts'
import { answerInvalid } from './errors.ts'
import type { Bound } from './context.ts'

const OF_THE_SERVER: ReadonlySet<string> = new Set(ROUTE_HEADERS.server)
const OF_ISOLATED: ReadonlySet<string> = new Set(ROUTE_HEADERS.isolated)

/** JSON, an event stream or plain text: no browser runs anything of these. */
const DATA = /^(?:application\/(?:[\w.+-]+\+)?json|text\/plain|text\/event-stream)\s*(?:;\s*charset="?utf-8"?\s*)?$/i
/** What a browser may do with anything else: show it, without scripts, forms, other documents, or the origin of this server. */
const SANDBOX = "sandbox; default-src 'none'"
const POLICY = 'content-security-policy'
/** Pages of this server, `/docs` for one, run scripts that come from it: none may come from a stranger, anywhere in a list of types. */
const SCRIPT = /(?:java|ecma|live|j)script/i
const PLAIN = 'text/plain; charset=utf-8'

/** A path of this server. Browsers drop tabs and take a backslash for a slash, so `/\t/evil.example` would lead elsewhere. */
const OWN_PATH = /^\/(?![/\\])[\x21-\x7e]*$/
/** They make a client send the same body to another route. */
const RESENDING = [307, 308]

/** Warned of once each, up to so many. */
const MOST_WARNINGS = 1_000

/** What answers: a route, or a mount by its path. */
type Source = Pick<Bound, 'name' | 'plugin' | 'isIsolated'>

/** Holds answers of routes to what a route may answer. */
export interface RouteReplies {
  /** The answer without the headers that are not the route's to set; each is logged once. Throws ROUTE_ANSWER_INVALID. */
  fit(from: Source, reply: RouteReply): RouteReply
  /** The type of a stream, and what it needs beside the usual headers. */
  forStream(bound: Bound, type: string): { readonly type: string; readonly headers: Readonly<Record<string, string>> }
}

export function createRouteReplies(log: Pick<Log, 'warn'>): RouteReplies {
  const warned = new Set<string>()
  const warn = ({ name, plugin, isIsolated }: Source, header: string) => {
    const key = `${name} ${header}`
    if (warned.has(key) || warned.size >= MOST_WARNINGS) return
    warned.add(key)
    const why = isIsolated ? 'a route of an isolated plugin may not set it' : 'only the server sets it'
    log.warn({ of: plugin, route: name, header }, `a header of a route was left out: ${why}`)
  }
  return {
    fit(from, reply) {
      const { isIsolated } = from
      if (reply.headers === undefined) return reply
      const given = Object.entries(reply.headers)
      const isAllowed = ([name]: [string, string]) => mayFrom(isIsolated, name.toLowerCase())
      const headers = given.every(isAllowed) ? reply.headers : Object.fromEntries(given.filter(isAllowed))
      for (const one of given) if (!isAllowed(one)) warn(from, one[0].toLowerCase().slice(0, 100))
      return isIsolated ? fitIsolated({ ...reply, headers }) : { ...reply, headers }
    },
    forStream: ({ isIsolated }, type) => (isIsolated ? shownAs(type) : { type, headers: {} }),
  }
}

const mayFrom = (isIsolated: boolean, name: string) =>
  isIsolated ? OF_ISOLATED.has(name) || name.startsWith(ROUTE_HEADERS.prefix) : !OF_THE_SERVER.has(name)

function fitIsolated(reply: RouteReply): RouteReply {
  const { headers = {}, status = 200 } = reply
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  if (byName.size < Object.keys(headers).length) throw answerInvalid('a header twice')
  const location = byName.get('location')
  if (location !== undefined && !OWN_PATH.test(location)) throw answerInvalid('a Location that is no path of this server')
  if (RESENDING.includes(status)) throw answerInvalid(`the status ${status}, which makes clients send their body elsewhere`)
  const given = byName.get('content-type')
  if (given === undefined) return { ...reply, headers }
  const { type, headers: more } = shownAs(given)
  return { ...reply, headers: { ...Object.fromEntries(byName), 'content-type': type, ...more } }
}

/** How a browser gets what an isolated plugin sends. */
function shownAs(type: string): ReturnType<RouteReplies['forStream']> {
  if (SCRIPT.test(type)) return { type: PLAIN, headers: { [POLICY]: SANDBOX } }
  return { type, headers: DATA.test(type) ? {} : { [POLICY]: SANDBOX } }
}
