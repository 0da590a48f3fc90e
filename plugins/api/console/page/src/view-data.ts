import type { ReplyOf } from '@svc/client'
import { allowedRequest, type PageRequest } from './bridge.ts'
import { sendForPage } from './page-answer.ts'
import { isRecord } from './schema-input.tsx'
import { visible } from './visible-text.ts'

// What a view shows comes from a plugin: it is found by a path, and measured.

export type View = NonNullable<ReplyOf<'get', '/api/v1/console/pages/{name}/view'>['view']>
type AnyPart = View['parts'][number]
export type Part<T extends AnyPart['type']> = Extract<AnyPart, { type: T }>
export type Format = NonNullable<Part<'table'>['columns'][number]['format']>

/** The result of a tool, for a page that shows it. */
export interface ToolGiven {
  /** Names this result among others. */
  readonly key: string
  readonly tool: string
  readonly arguments: unknown
  readonly value: unknown
}

/** The plugin behind a view. */
export interface ViewSource {
  /** The name of the page. */
  readonly name: string
  /** Patterns of the requests that it can send: `GET /notes/*`. */
  readonly rights: readonly string[]
  /** The id of the run or conversation that it is shown for. */
  readonly ids: Readonly<Record<string, string>>
  /** The result that it is shown for. */
  readonly given?: ToolGiven | undefined
}

/** What each part of a view gets. */
export interface PartProps<P> {
  readonly part: P
  /** Its place in the view. */
  readonly at: number
  readonly source: ViewSource
  /** Reads the parts of the view again. */
  readonly onChanged: () => Promise<unknown>
}

/** What a part declares about a request. */
export interface Declared {
  /** Absent in a part for the result of a tool. */
  readonly request?: string
  readonly query?: Readonly<Record<string, string | number | boolean>>
}

/** The value at a path. Only own members count, and no index. */
export function valueAt(data: unknown, path: string): unknown {
  let value = data
  for (const name of path.split('.')) {
    if (!isRecord(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}

/** A view shows so many rows or points. */
export const MOST_ROWS = 1_000

/** The first items of a list in an answer, and how many there are. */
export function itemsOf(
  answer: unknown,
  path: string | undefined
): { readonly items: readonly unknown[]; readonly count: number } {
  const found = path === undefined ? answer : valueAt(answer, path)
  if (!Array.isArray(found)) throw viewError('INVALID_ANSWER', `the answer has no list${path === undefined ? '' : ` at ${path}`}`)
  return { items: found.slice(0, MOST_ROWS), count: found.length }
}

const viewError = (code: string, message: string) => Object.assign(new Error(message), { code })

/** A parameter of a request: a text or number that is there. */
function parameterOf(name: string, { ids }: ViewSource, row: unknown): string {
  const value = name.startsWith('row.') ? valueAt(row, name.slice('row.'.length)) : ids[name]
  if ((typeof value === 'string' && value !== '') || (typeof value === 'number' && Number.isFinite(value))) return String(value)
  throw viewError('INVALID_VALUE', `the request has no value for {${name}}`)
}

/** The request that a part sends. Throws an error with a code for one that the plugin has not declared. */
export function requestOf(
  { request = '', query = {} }: Declared,
  source: ViewSource,
  more: { row?: unknown; body?: unknown } = {}
): PageRequest {
  const [method, template = ''] = request.split(' ')
  const path = template.replaceAll(/\{([^{}]*)\}/g, (_all, name: string) =>
    encodeURIComponent(parameterOf(name, source, more.row))
  )
  const given = Object.entries(query).map(([name, value]) => {
    const parameter = /^\{(.*)\}$/.exec(String(value))?.[1]
    return [name, parameter === undefined ? value : parameterOf(parameter, source, undefined)] as const
  })
  const body = more.body === undefined ? {} : { body: more.body }
  return allowedRequest({ method, path, query: Object.fromEntries(given), ...body }, source.rights)
}

/** The requests of all views that run at once. The others wait, so that a slow plugin leaves the console its connections. */
const AT_ONCE = 3
const waiting: (() => void)[] = []
let running = 0

async function inTurn<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  if (running >= AT_ONCE) await new Promise<void>(resolve => waiting.push(resolve))
  else running++
  try {
    signal.throwIfAborted()
    return await work()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else running--
  }
}

/** What a part shows: the answer to its request, or the result of the tool. */
export async function dataOf(part: Declared, source: ViewSource, signal: AbortSignal): Promise<unknown> {
  if (part.request !== undefined) return answerOf(requestOf(part, source), signal)
  if (source.given === undefined) throw viewError('INVALID_VALUE', 'there is no result of a tool here')
  return source.given.value
}

/** Sends a request of a view. Throws an error with status, code and hint, all of them only text. */
export async function answerOf(request: PageRequest, signal: AbortSignal): Promise<unknown> {
  const { status, body, requestId } = await inTurn(signal, () => sendForPage(request, signal))
  if (status >= 200 && status < 300) return body
  const member = (path: string) => {
    const value = valueAt(body, path)
    return typeof value === 'string' ? visible(value) : undefined
  }
  throw Object.assign(new Error(member('error') ?? `the server answered with the status ${status}`), {
    status,
    code: member('error_code'),
    hint: member('details.hint'),
    requestId: requestId === undefined ? undefined : visible(requestId),
  })
}
