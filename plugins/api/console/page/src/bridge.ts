/**
 * The console's side of the frame of a plugin's page. Whatever comes from the frame is hostile: it is measured before it is read, and a
 * page that sends too much is stopped. The page asks for requests; the console sends those that the plugin declared and a person accepted.
 */

/** What the console says of itself to a page: the context of MCP Apps. */
export interface HostContext {
  readonly theme: 'light' | 'dark'
  readonly locale: string
  readonly [member: string]: unknown
}

export interface PageAnswer {
  readonly status: number
  readonly body: unknown
}

/** A request that passed all checks. */
export interface PageRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly body?: string
}

export type FrameState =
  | { readonly state: 'starting' }
  | { readonly state: 'running' }
  /** It does not answer, and may again. */
  | { readonly state: 'silent' }
  /** It was stopped, for this reason. */
  | { readonly state: 'stopped'; readonly reason: string }

export type Params = Readonly<Record<string, unknown>>
type Method = (params: Params, ending: AbortSignal) => unknown
type Notify = (method: string, params: object) => void

export interface BridgeOptions {
  /** The methods that the page can call besides those of every page. */
  readonly methods: Readonly<Record<string, Method>>
  /** What the console can do for the page, in the words of MCP Apps. */
  readonly capabilities?: object
  /** The page has started. `notify` sends it a notification. */
  readonly onStarted?: (notify: Notify) => void
  /** A notification that is not of every page. */
  readonly onNotice?: (method: string, params: Params, notify: Notify) => void
  /** Documents that the frame loads before it stays; default 1. */
  readonly documents?: number
  readonly context: () => HostContext
  /** What the page wants back when it is loaded again. */
  readonly kept: { readonly get: () => unknown; readonly set: (value: unknown) => void }
  readonly post: (message: object) => void
  readonly onState: (state: FrameState) => void
}

export interface Bridge {
  /** Takes a message of the frame. */
  readonly take: (data: unknown) => void
  /** The document in the frame was loaded. A second time means that the page has left its place. */
  readonly loaded: () => void
  /** Says that theme or language have changed. */
  readonly contextChanged: () => void
  /** Ends it, and says why. */
  readonly stop: (reason: string) => void
  readonly close: () => void
}

const PROTOCOL = '2026-01-26'
/** A page that has not called `ui/initialize` by then has failed. */
const START_MS = 10_000
const PING_MS = 5_000
const PING = 'ping'
/** Messages at once, and each second in the long run. */
const BURST = 200
const PER_SECOND = 50
const IN_FLIGHT = 8

const TOO_MANY = 'It sent too many messages.'
const TOO_LARGE = 'It sent a message that is too large.'
const LEFT = 'It has left its place for another document.'
const NO_START = 'It did not start: it has not connected itself to the console, as bridge.js does.'

export function createBridge(options: BridgeOptions): Bridge {
  const { post, onState } = options
  const ending = new AbortController()
  const isClosed = () => ending.signal.aborted
  const rate = createRate()
  const calls = createCalls(options, ending.signal)
  const notify: Notify = (method, params) => {
    if (!isClosed()) post({ jsonrpc: '2.0', method, params })
  }
  let documents = 0
  const stop = (reason: string) => {
    if (isClosed()) return
    close()
    onState({ state: 'stopped', reason })
  }
  const watch = createWatch(options, stop)
  const close = () => {
    watch.close()
    ending.abort()
  }
  return {
    take(data) {
      if (isClosed()) return
      if (!rate()) return stop(TOO_MANY)
      if (!isSmall(data)) return stop(TOO_LARGE)
      const message = messageIn(data)
      if (!message) return
      const { id, method, params } = message
      if (method === undefined) watch.answered(id)
      else if (id !== undefined) void calls(id, method, params)
      else if (method === 'ui/notifications/initialized') {
        if (watch.started()) options.onStarted?.(notify)
      } else if (method === 'svc/keep') options.kept.set(params.value)
      else options.onNotice?.(method, params, notify)
    },
    loaded() {
      documents++
      if (documents > (options.documents ?? 1)) stop(LEFT)
    },
    contextChanged() {
      if (watch.isStarted()) notify('ui/notifications/host-context-changed', options.context())
    },
    stop,
    close,
  }
}

/** Follows whether the page has started, and whether it still answers. */
function createWatch({ post, onState }: BridgeOptions, stop: (reason: string) => void) {
  let isStarted = false
  let unanswered = 0
  const starting = setTimeout(() => stop(NO_START), START_MS)
  const pinging = setInterval(() => {
    if (!isStarted) return
    if (unanswered > 0) onState({ state: 'silent' })
    unanswered++
    post({ jsonrpc: '2.0', id: PING, method: 'ping' })
  }, PING_MS)
  return {
    isStarted: () => isStarted,
    /** Returns whether it is the first time. */
    started(): boolean {
      if (isStarted) return false
      isStarted = true
      clearTimeout(starting)
      onState({ state: 'running' })
      return true
    },
    answered(id: MessageId | undefined) {
      if (id !== PING) return
      if (unanswered > 1) onState({ state: 'running' })
      unanswered = 0
    },
    close() {
      clearTimeout(starting)
      clearInterval(pinging)
    },
  }
}

/** The methods that a page can call. */
function createCalls({ post, context, kept, capabilities = {}, ...options }: BridgeOptions, ending: AbortSignal) {
  const methods: Readonly<Record<string, Method>> = {
    ...options.methods,
    'ui/initialize': () => ({
      protocolVersion: PROTOCOL,
      hostInfo: { name: 'svc console', version: '1' },
      hostCapabilities: capabilities,
      hostContext: { ...context(), kept: kept.get() ?? null },
    }),
    ping: () => ({}),
  }
  const fail = (id: MessageId, code: number, message: string, data: object = {}) =>
    post({ jsonrpc: '2.0', id, error: { code, message, data } })
  return async (id: MessageId, method: string, params: Params): Promise<void> => {
    const run = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (!run) return fail(id, -32601, `there is no method ${method.slice(0, 80)}`)
    try {
      const result = await run(params, ending)
      if (!ending.aborted) post({ jsonrpc: '2.0', id, result })
    } catch (error) {
      if (!ending.aborted) fail(id, -32000, textOf(error), { code: codeOf(error) })
    }
  }
}

type MessageId = string | number

interface Message {
  readonly id: MessageId | undefined
  /** Absent in an answer. */
  readonly method: string | undefined
  readonly params: Params
}

/** A JSON-RPC message. Everything else is ignored. */
function messageIn(data: unknown): Message | undefined {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return undefined
  const { jsonrpc, id, method, params } = data as Record<string, unknown>
  if (jsonrpc !== '2.0' || !(id === undefined || typeof id === 'string' || Number.isSafeInteger(id))) return undefined
  if (!(method === undefined || typeof method === 'string')) return undefined
  const given = typeof params === 'object' && params !== null && !Array.isArray(params) ? (params as Params) : {}
  return { id: id as MessageId | undefined, method, params: given }
}

/** A bucket that fills again with time. */
function createRate(): () => boolean {
  let left = BURST
  let at = performance.now()
  return () => {
    const now = performance.now()
    left = Math.min(BURST, left + ((now - at) / 1_000) * PER_SECOND)
    at = now
    left--
    return left >= 0
  }
}

const MOST_CHARACTERS = 262_144
const MOST_VALUES = 10_000
const MOST_DEPTH = 32

/** Whether a message is plain data of a modest size. It stops reading at the limit. */
export function isSmall(data: unknown): boolean {
  let characters = 0
  let values = 0
  const fits = (value: unknown, depth: number): boolean => {
    values++
    if (typeof value === 'string') characters += value.length
    if (values > MOST_VALUES || characters > MOST_CHARACTERS || depth > MOST_DEPTH) return false
    if (typeof value !== 'object' || value === null) return typeof value !== 'bigint'
    if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return false
    // by key, so that the entries of a long list are not gathered before they are counted
    for (const key in value) {
      characters += key.length
      if (!fits((value as Params)[key], depth + 1)) return false
    }
    return true
  }
  return fits(data, 0)
}

// --- the requests of a page ---

interface RequestOptions {
  /** Patterns of the requests that the page can send: `GET /notes/*`. */
  readonly rights: readonly string[]
  readonly request: (request: PageRequest, signal: AbortSignal) => Promise<PageAnswer>
}

/** The method for requests of a page of a plugin. */
export const createRequests = ({ rights, request }: RequestOptions): Readonly<Record<string, Method>> => ({
  'svc/request': limited('requests', async (params, ending) => request(allowedRequest(params, rights), ending)),
})

/** So many calls of a method run at once. */
export function limited(what: string, run: (params: Params, ending: AbortSignal) => Promise<unknown>, most = IN_FLIGHT): Method {
  let running = 0
  return async (params, ending) => {
    if (running >= most) throw pageError('RATE_LIMITED', `at most ${most} ${what} run at once`)
    running++
    try {
      return await run(params, ending)
    } finally {
      running--
    }
  }
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const PATH = /^\/[\w.~!$&'()*+,;=:@%/-]{0,2000}$/
/** Whatever a plugin declares: what gives or takes a credential, and what changes plugins, is for the person alone. */
const NEVER = ['/api/v1/console', '/api/v1/tokens', '/api/v1/plugins/plans', '/console']

export const pageError = (code: string, message: string) => Object.assign(new Error(message), { code })
const textOf = (error: unknown) => (error instanceof Error ? error.message : 'it failed')
const codeOf = (error: unknown) => {
  const { code } = Object(error) as { readonly code?: unknown }
  return typeof code === 'string' ? code : 'FAILED'
}

/** The request that a page asks for. Throws an error with a code. */
export function allowedRequest({ method, path, query, body }: Params, rights: readonly string[]): PageRequest {
  if (typeof method !== 'string' || !METHODS.includes(method))
    throw pageError('INVALID_VALUE', `method must be one of ${METHODS.join(', ')}`)
  if (typeof path !== 'string' || !isPlainPath(path)) throw pageError('INVALID_VALUE', 'path must be a plain path like /notes/1')
  const wanted = `${method} ${path}`
  if (isNever(path) || !rights.some(right => fits(right, wanted)))
    throw pageError(
      'FORBIDDEN',
      `the plugin has no permission for ${wanted.slice(0, 200)}: list it in permissions.console of its manifest`
    )
  if (method === 'GET' && body !== undefined) throw pageError('INVALID_VALUE', 'a GET request has no body')
  const search = queryOf(query)
  return {
    method,
    path: search === '' ? path : `${path}?${search}`,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }
}

/** The path is the one that the server gets: without steps, empty segments and encoded slashes and dots. */
function isPlainPath(path: string): boolean {
  if (!PATH.test(path) || /\/\/|%(?:2[ef]|5c|00|25)/i.test(path)) return false
  try {
    decodeURIComponent(path)
    return new URL(path, 'http://svc').pathname === path
  } catch {
    return false
  }
}

function isNever(path: string): boolean {
  const plain = decodeURIComponent(path).toLowerCase()
  return NEVER.some(prefix => plain === prefix || plain.startsWith(`${prefix}/`))
}

/** `*` matches any characters. In one pass, because a regular expression with many stars could take for ever. */
function fits(right: string, wanted: string): boolean {
  const [first = '', ...parts] = right.split('*')
  const last = parts.pop()
  if (last === undefined) return right === wanted
  const end = wanted.length - last.length
  if (first.length > end || !wanted.startsWith(first) || !wanted.endsWith(last)) return false
  let at = first.length
  for (const part of parts) {
    const found = wanted.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

function queryOf(query: unknown): string {
  if (query === undefined) return ''
  if (typeof query !== 'object' || query === null || Array.isArray(query))
    throw pageError('INVALID_VALUE', 'query must be an object')
  const pairs = Object.entries(query).flatMap(([name, value]) => [value as unknown].flat().map(one => [name, one] as const))
  if (pairs.some(([, value]) => !['string', 'number', 'boolean'].includes(typeof value)))
    throw pageError('INVALID_VALUE', 'query must have texts, numbers and booleans')
  return new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, String(value)])).toString()
}
