import type { IncomingHttpHeaders } from 'node:http'
import { type CallContext, type Log, redactText, show, type SlotView, withTimeout } from '@svc/core'
import {
  type ErrorFormat,
  type ErrorRecord,
  type FailedRequest,
  type FormattedError,
  type Mount,
  type Route,
  ROUTE_HEADERS,
} from '@svc/core/contracts'
import type { RequestState } from './context.ts'
import { type ErrorAnswer, errorFormatInvalid, formattedInvalid } from './errors.ts'
import { createLogThrottle } from './log-throttle.ts'
import { isReserved } from './routing.ts'
import { CREDENTIAL_NAMES } from './schemes.ts'

/** An error response in the format of a plugin, checked. */
export interface Formatted {
  /** JSON. */
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  /** The end of an event stream. */
  readonly event: string | undefined
}

/** Asks plugins for the format of error responses. */
export interface ErrorFormatting {
  /** Takes note of the current formats, routes and mounts. */
  update(): void
  /** Returns `undefined` if no format applies, or if the format fails or is late. Never throws. */
  format(target: FormatTarget, answer: ErrorAnswer): Promise<Formatted | undefined>
}

/** The request whose error gets a format. */
export interface FormatTarget extends Pick<RequestState, 'requestId' | 'route' | 'mount'> {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

interface ErrorFormattingOptions {
  readonly formats: SlotView<ErrorFormat>
  readonly routes: SlotView<Route>
  readonly mounts: SlotView<Mount>
  readonly isIsolated: (plugin: string | undefined) => boolean
  readonly log: Pick<Log, 'warn' | 'error'>
}

/** A valid format with its rights. */
interface BoundFormat {
  readonly name: string
  readonly plugin: string | undefined
  readonly format: ErrorFormat
  /** The plugin can format errors of routes of other plugins. */
  readonly isTrusted: boolean
  /** No other plugin serves a path below the path of the format. */
  readonly isAlone: boolean
  readonly state: FormatState
}

/** What the server remembers of a format while slots change. */
interface FormatState {
  /** Calls that have not ended, among them late ones. */
  running: number
  isReported: boolean
}

/** Milliseconds for a call. */
const FORMAT_MS = 500
/** Maximum open calls of a format. Above, the server sends its own record, so that a format that hangs does not collect requests. */
const MOST_RUNNING = 256
const LONGEST_PATH = 2_000

export function createErrorFormatting(options: ErrorFormattingOptions): ErrorFormatting {
  const { formats, routes, mounts, log } = options
  const due = createLogThrottle()
  const paths = createOwnedPaths(options)
  let version = -1
  let bound: readonly BoundFormat[] = []
  const states = new WeakMap<ErrorFormat, FormatState>()
  const stateOf = (format: ErrorFormat): FormatState => {
    const state = states.get(format) ?? { running: 0, isReported: false }
    states.set(format, state)
    return state
  }
  const update = () => {
    const now = formats.version + routes.version + mounts.version // the sum is unique, because all versions only grow
    if (version === now) return
    version = now
    paths.update()
    bound = bindAll({ ...options, isAlone: paths.isAlone, stateOf })
  }
  const failed = ({ name, plugin }: BoundFormat, err: unknown) => {
    const left_out = due(name)
    if (left_out !== undefined)
      log.warn({ err, of: plugin, format: name, left_out }, 'an error format failed; the server sent its default response')
  }
  return {
    update,
    async format(target, answer) {
      update()
      const found = bound.find(one => isMatch(one.format, target) && isAllowed(one, target))
      if (!found || found.state.running >= MOST_RUNNING) return undefined
      try {
        return checked(await call(found, failedRequest(target, answer)))
      } catch (err) {
        failed(found, err)
        return undefined
      }
    },
  }
}

/** Calls a format without the rights of the caller of the request, and without its signal: the request can have been aborted already. */
async function call(bound: BoundFormat, failed: FailedRequest): Promise<FormattedError> {
  const work = async (signal: AbortSignal): Promise<FormattedError> => {
    bound.state.running++
    const context: CallContext = { signal, principal: ANONYMOUS, requestId: failed.requestId, deadline: Date.now() + FORMAT_MS }
    try {
      return await bound.format.format(failed, context)
    } finally {
      bound.state.running--
    }
  }
  return withTimeout(FORMAT_MS, work, { late: () => formattedInvalid(`nothing within ${FORMAT_MS} ms`) })
}

const ANONYMOUS = Object.freeze({ id: 'anonymous', scopes: Object.freeze([]) })

/** The failed request as plain data. Details of an error in this process can be anything, and can contain secrets. */
function failedRequest({ requestId, method, path }: FormatTarget, { status, record, retryAfter }: ErrorAnswer): FailedRequest {
  return {
    record: JSON.parse(redactText(JSON.stringify(record))) as ErrorRecord,
    status,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    requestId,
    method,
    path: path.slice(0, LONGEST_PATH),
  }
}

const isBelow = (path: string, above: string) => path === above || path.startsWith(`${above}/`)

const isMatch = ({ path, header }: ErrorFormat, target: FormatTarget) =>
  isBelow(target.path, path) && (header === undefined || Object.hasOwn(target.headers, header))

/** Whether the plugin can format an error of this request. */
function isAllowed({ plugin, isTrusted, isAlone }: BoundFormat, { route, mount }: FormatTarget): boolean {
  if (isTrusted) return true
  if (route) return route.plugin === plugin
  return mount === undefined && isAlone
}

interface BindOptions extends Pick<ErrorFormattingOptions, 'formats' | 'isIsolated' | 'log'> {
  readonly isAlone: (path: string, plugin: string | undefined) => boolean
  readonly stateOf: (format: ErrorFormat) => FormatState
}

/** Binds the current formats, the most specific first. */
function bindAll({ formats, isIsolated, isAlone, stateOf, log }: BindOptions): readonly BoundFormat[] {
  const seen = new Map<string, string>()
  const all = formats.entries().flatMap(([name, format]): BoundFormat[] => {
    const plugin = formats.owner(name)
    const isTrusted = !isIsolated(plugin)
    const state = stateOf(format)
    const problem = problemOf(format, isTrusted) ?? twinOf(name, format, seen)
    if (problem !== undefined) {
      if (!state.isReported) log.error({ err: errorFormatInvalid(name, plugin, problem) }, 'ignored an invalid error format')
      state.isReported = true
      return []
    }
    return [{ name, plugin, format, isTrusted, isAlone: isTrusted || isAlone(format.path, plugin), state }]
  })
  return all.toSorted((a, b) => b.format.path.length - a.format.path.length || Number(hasHeader(b)) - Number(hasHeader(a)))
}

const hasHeader = ({ format }: BoundFormat) => format.header !== undefined

const PATH = /^(?:\/[\w.-]+)+$/
const HEADER = /^[a-z0-9-]{1,100}$/

function problemOf({ path, header }: ErrorFormat, isTrusted: boolean): string | undefined {
  if (typeof path !== 'string' || !PATH.test(path)) return `has the path ${show(path)}, which is not a path like /v1`
  if (!isTrusted && isReserved(path)) return `is for ${path}, which isolated plugins cannot use`
  if (header === undefined) return undefined
  if (typeof header !== 'string' || !HEADER.test(header))
    return `has the header ${show(header)}, which is not a name in lower case`
  return CREDENTIAL_NAMES.includes(header) ? `has the header ${header}, which carries credentials` : undefined
}

function twinOf(name: string, { path, header = '' }: ErrorFormat, seen: Map<string, string>): string | undefined {
  const key = `${path} ${header}`
  const first = seen.get(key)
  if (first === undefined) seen.set(key, name)
  return first === undefined ? undefined : `is for the same requests as ${first}`
}

/** A path that a plugin serves. */
interface OwnedPath {
  readonly plugin: string | undefined
  /** Whether a path below `above` can be below this one. */
  readonly canMeet: (above: string) => boolean
}
/** Limit of remembered paths. */
const MOST_PATHS = 10_000

/**
 * Remembers the paths of all routes and mounts until the server ends: while the process of a plugin restarts, its routes are gone, and a format of another plugin
 * must not take its paths.
 */
function createOwnedPaths({ routes, mounts }: Pick<ErrorFormattingOptions, 'routes' | 'mounts'>) {
  const owned = new Map<string, OwnedPath>()
  const note = (plugin: string | undefined, path: string, canMeet: OwnedPath['canMeet']) => {
    if (owned.size < MOST_PATHS) owned.set(`${plugin} ${path}`, { plugin, canMeet })
  }
  return {
    update() {
      for (const [name, { path }] of routes.entries()) note(routes.owner(name), path, above => canBeBelow(path, above))
      for (const [name, { path }] of mounts.entries())
        note(mounts.owner(name), path, above => isBelow(path, above) || isBelow(above, path))
    },
    /** Whether no other plugin has a path below this one. */
    isAlone: (path: string, plugin: string | undefined) =>
      owned.size < MOST_PATHS && [...owned.values()].every(one => one.plugin === plugin || !one.canMeet(path)),
  }
}

/** Whether a route with this template can serve a path below `above`. A parameter matches every segment, the rest all that follow. */
function canBeBelow(template: string, above: string): boolean {
  const segments = template.split('/')
  const rest = segments.at(-1)!.startsWith('*') ? segments.length - 1 : Infinity
  return above.split('/').every((segment, at) => at >= rest || segments[at] === segment || segments[at]?.startsWith(':') === true)
}

const MEMBERS: readonly string[] = ['body', 'headers', 'event'] satisfies (keyof FormattedError)[]
/** Maximum characters of a body or an event. */
const LONGEST = 65_536
const MOST_HEADERS = 50
const VALUE = /^[\x20-\x7e]{0,1000}$/
const API_HEADERS: ReadonlySet<string> = new Set(ROUTE_HEADERS.api)

/** Checks what a format returned. Throws ROUTE_ANSWER_INVALID. */
function checked(formatted: unknown): Formatted {
  if (!isObject(formatted)) throw formattedInvalid(show(formatted))
  const other = Object.keys(formatted).find(key => !MEMBERS.includes(key))
  if (other !== undefined) throw formattedInvalid(`the member ${show(other)}`)
  const { body, headers = {}, event } = formatted
  if (!isObject(body)) throw formattedInvalid(`${show(body)} as its body`)
  const text = JSON.stringify(body) as string | undefined
  if (text === undefined || text.length > LONGEST)
    throw formattedInvalid(`a body that is no JSON of at most ${LONGEST} characters`)
  if (event !== undefined && (typeof event !== 'string' || event.length > LONGEST || !event.endsWith('\n\n')))
    throw formattedInvalid('an event that does not end with an empty line, or is too long')
  return { body: text, headers: checkedHeaders(headers), event: event as string | undefined }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the headers that a format can set. Throws if one of them is not valid. */
function checkedHeaders(headers: unknown): Readonly<Record<string, string>> {
  if (!isObject(headers) || Object.keys(headers).length > MOST_HEADERS) throw formattedInvalid(`${show(headers)} as its headers`)
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  const allowed = named.filter(([name]) => isApiHeader(name))
  for (const [name, value] of allowed)
    if (!HEADER.test(name) || typeof value !== 'string' || !VALUE.test(value))
      throw formattedInvalid(`an invalid header ${show(name)}`)
  return Object.fromEntries(allowed) as Record<string, string>
}

/** Whether a header is for the clients of model APIs. `name` is in lower case. */
export const isApiHeader = (name: string): boolean =>
  (API_HEADERS.has(name) || ROUTE_HEADERS.apiPrefixes.some(prefix => name.startsWith(prefix))) &&
  !ROUTE_HEADERS.apiReserved.includes(name)
