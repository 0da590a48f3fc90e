import type { CallContext } from '@svc/core'
import type { Json, NodeTask, WorkflowNode } from '@svc/core/contracts'
import { type GuardedFetch, type GuardedRequest, type GuardedResponse, readBody } from '@svc/safe-fetch'
import { objectOf } from '@svc/plugin-kit'
import { interrupted, invalid, noJson, statusUnexpected } from './errors.ts'

type Scalar = string | number | boolean | null

interface HttpSettings {
  readonly url: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, Scalar>>
  readonly query?: Readonly<Record<string, Scalar | readonly Scalar[]>>
  readonly body?: Json
  readonly statuses?: readonly number[]
  readonly parse?: 'auto' | 'json' | 'text'
}

const scalars = { type: ['string', 'number', 'boolean', 'null'] }

const SETTINGS = objectOf(
  {
    url: { type: 'string', minLength: 1, maxLength: 10_000, description: 'URL of the request' },
    method: { enum: ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'], default: 'GET', description: 'HTTP method' },
    headers: { type: 'object', additionalProperties: scalars, default: {}, description: 'Request headers; null omits a header' },
    query: {
      type: 'object',
      additionalProperties: { anyOf: [scalars, { type: 'array', items: scalars }] },
      default: {},
      description: 'Query parameters; a list adds each item, null is omitted',
    },
    body: { description: 'Request body: a text is sent as it is, other values as JSON' },
    statuses: {
      type: 'array',
      items: { type: 'integer', minimum: 200, maximum: 599 },
      minItems: 1,
      description: 'Accepted statuses; default: 200 to 299',
    },
    parse: {
      enum: ['auto', 'json', 'text'],
      default: 'auto',
      description: 'How to read the body; auto: as the content type says',
    },
  },
  ['method', 'headers', 'query', 'body', 'statuses', 'parse']
)

const OUTPUT = objectOf({
  status: { type: 'integer' },
  headers: { type: 'object', additionalProperties: { type: 'string' }, description: 'Headers by lower-case name' },
  body: { description: 'JSON or text' },
  url: { type: 'string', description: 'Final URL, after redirects' },
})

/** Methods without side effects. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Creates the node type `http`, which sends an HTTP request. */
export const createHttp = (web: Pick<GuardedFetch, 'fetch'>): WorkflowNode => ({
  description:
    'Sends an HTTP request. Private addresses are refused unless `workflow_nodes.http.allow` lists them. Requests that change something carry an Idempotency-Key.',
  settings: SETTINGS,
  output: OUTPUT,
  repeatable: 'itself',
  async *run(task, ctx) {
    const settings = task.settings as unknown as HttpSettings
    if (task.interrupted && !SAFE.has(settings.method ?? 'GET'))
      throw interrupted(task.node, 'the server may have received its request')
    yield { type: 'output', output: await asked(web, settings, task, ctx) }
  },
})

async function asked(web: Pick<GuardedFetch, 'fetch'>, settings: HttpSettings, task: NodeTask, ctx: CallContext): Promise<Json> {
  const response = await web.fetch(urlOf(settings), ctx, requestOf(settings, task))
  const { status, headers, url } = response
  const text = await textOf(response)
  const place = shown(url)
  if (!isFine(status, settings.statuses)) throw statusUnexpected(place, status, text, headers['retry-after'])
  return { status, headers, body: parsed(text, headers['content-type'], settings.parse, place), url }
}

/** The URL with its query. Throws INVALID_VALUE. */
function urlOf({ url: written, query = {} }: HttpSettings): string {
  const url = URL.parse(written)
  if (!url) throw invalid('url', 'must be a URL, like https://api.example.com/things')
  for (const [name, value] of Object.entries(query))
    for (const item of listOf(value)) if (item !== null) url.searchParams.append(name, String(item))
  return url.href
}

const listOf = (value: Scalar | readonly Scalar[]) => (typeof value === 'object' && value !== null ? value : [value])

function requestOf({ method = 'GET', headers = {}, body }: HttpSettings, { idempotencyKey }: NodeTask): GuardedRequest {
  const own = Object.entries(headers).flatMap(([name, value]) =>
    value === null ? [] : [[name.toLowerCase(), String(value)] as const]
  )
  const isText = typeof body === 'string'
  return {
    method,
    headers: {
      ...(SAFE.has(method) ? {} : { 'idempotency-key': idempotencyKey }),
      ...(body === undefined ? {} : { 'content-type': isText ? 'text/plain; charset=utf-8' : 'application/json' }),
      ...Object.fromEntries(own),
    },
    ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
  }
}

async function textOf(response: GuardedResponse): Promise<string> {
  const { bytes } = await readBody(response.body)
  return new TextDecoder(charsetOf(response.headers['content-type'])).decode(bytes)
}

function charsetOf(type = ''): string {
  const name = /charset\s*=\s*"?([\w-]+)/i.exec(type)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(name).encoding
  } catch {
    return 'utf-8'
  }
}

const isFine = (status: number, fine: readonly number[] | undefined) =>
  fine ? fine.includes(status) : status >= 200 && status < 300

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i

function parsed(text: string, type = '', parse: HttpSettings['parse'] = 'auto', place: string): Json {
  if (parse === 'text' || (parse === 'auto' && (!JSON_TYPE.test(type) || text === ''))) return text
  try {
    return JSON.parse(text) as Json
  } catch (error) {
    throw noJson(place, error)
  }
}

/** The URL for error texts, without its query, which can contain a key. */
function shown(href: string): string {
  const { origin, pathname } = new URL(href)
  return origin + pathname
}
