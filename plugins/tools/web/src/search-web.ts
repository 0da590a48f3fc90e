import { type CallContext, codeOf } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import { stripResult, toolOf } from '@svc/plugin-kit'
import { type GuardedFetch, readBody } from '@svc/safe-fetch'
import { searchIncomplete, searchStatus, searchUnreachable, searchUnreadable } from './errors.ts'
import type { WebSearchConfig, WebConfig } from './settings.ts'

const COUNT = 10
const MOST = 50
const LONGEST = { title: 300, url: 2000, snippet: 2000 } as const

type Hit = {
  readonly title: string
  readonly url: string
  readonly snippet: string
}

/** Creates `search_web`, which queries the configured endpoint. */
export function createSearchWeb(web: GuardedFetch, endpoint: Endpoint, config: WebConfig): Tool {
  return toolOf<{ readonly query: string; readonly count?: number }>({
    description: 'Searches the web and returns titles, URLs and summaries. Read a result with fetch_page.',
    category: 'web',
    effects: ['network'],
    parameters: {
      type: 'object',
      properties: {
        query: { type: 'string', minLength: 1, maxLength: 1000, pattern: '\\S', description: 'search terms' },
        count: { type: 'integer', minimum: 1, maximum: MOST, description: `maximum number of results; default ${COUNT}` },
      },
      required: ['query'],
      additionalProperties: false,
    },
    result: RESULT,
    timeoutMs: config.timeout_ms,
    async call({ query, count = COUNT }, ctx) {
      const results = hitsOf(await ask(web, endpoint, query.toWellFormed(), count, ctx), endpoint).slice(0, count)
      const text = results.map(({ title, url, snippet }, at) => `${at + 1}. ${title}\n   ${url}\n   ${snippet}`).join('\n')
      return { content: [{ type: 'text', text: text || '[No results.]' }], structured: { query, results } }
    },
  })
}

const RESULT = {
  type: 'object',
  properties: {
    query: { type: 'string' },
    results: {
      type: 'array',
      items: {
        type: 'object',
        properties: { title: { type: 'string' }, url: { type: 'string' }, snippet: { type: 'string' } },
        required: ['title', 'url', 'snippet'],
        additionalProperties: false,
      },
    },
  },
  required: ['query', 'results'],
  additionalProperties: false,
} as const

async function ask(web: GuardedFetch, endpoint: Endpoint, query: string, count: number, ctx: CallContext): Promise<unknown> {
  const { method, headers } = endpoint
  const body = endpoint.bodyFor(query, count)
  const request = { method, headers, ...(body !== undefined && { body }), limits: { redirects: 0 } }
  try {
    const answer = await web.fetch(endpoint.urlFor(query, count), ctx, request)
    if (answer.status !== 200) answer.discard()
    return answer.status === 200 ? parsed((await readBody(answer.body)).bytes) : await Promise.reject(searchStatus(answer.status))
  } catch (error) {
    ctx.signal.throwIfAborted()
    throw codeOf(error) === 'SEARCH_FAILED' ? error : searchUnreachable(codeOf(error) ?? 'unknown')
  }
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    throw searchUnreadable()
  }
}

const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined

function hitsOf(answer: unknown, { results, fields }: Endpoint): Hit[] {
  const list = results.reduce(member, answer)
  if (list === undefined && typeof answer === 'object' && answer !== null && !Array.isArray(answer) && results.length > 1)
    return []
  if (!Array.isArray(list)) throw searchUnreadable()
  return list.flatMap(item => {
    const [title, url, snippet] = (['title', 'url', 'snippet'] as const).map(name =>
      text(member(item, fields[name]), LONGEST[name])
    )
    return url ? [{ title: title || url, url, snippet: snippet ?? '' }] : []
  })
}

const text = (value: unknown, longest: number) =>
  typeof value === 'string' ? stripResult(value.slice(0, longest).toWellFormed()).text.trim() : ''

/** Preset of a search service. */
interface Preset {
  readonly url?: string
  readonly method: 'GET' | 'POST'
  readonly body?: Readonly<Record<string, string | number | boolean>>
  readonly key_header?: string
  readonly key_prefix?: string
  readonly results: string
  readonly fields: { readonly title: string; readonly url: string; readonly snippet: string }
}

const FIELDS = { title: 'title', url: 'url', snippet: 'content' }
const PRESETS: Readonly<Record<WebSearchConfig['type'], Preset>> = {
  searxng: { method: 'GET', results: 'results', fields: FIELDS },
  brave: {
    url: 'https://api.search.brave.com/res/v1/web/search?q={query}&count={count}',
    method: 'GET',
    key_header: 'X-Subscription-Token',
    results: 'web.results',
    fields: { ...FIELDS, snippet: 'description' },
  },
  tavily: {
    url: 'https://api.tavily.com/search',
    method: 'POST',
    body: { query: '{query}', max_results: '{count}' },
    key_header: 'Authorization',
    key_prefix: 'Bearer ',
    results: 'results',
    fields: FIELDS,
  },
  serper: {
    url: 'https://google.serper.dev/search',
    method: 'POST',
    body: { q: '{query}', num: '{count}' },
    key_header: 'X-API-KEY',
    results: 'organic',
    fields: { title: 'title', url: 'link', snippet: 'snippet' },
  },
  json: { method: 'GET', key_header: 'Authorization', key_prefix: 'Bearer ', results: 'results', fields: FIELDS },
}

/** A configured search endpoint. */
interface Endpoint {
  /** Its host, which is allowed even if it is not public. */
  readonly host: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly results: readonly string[]
  readonly fields: { readonly title: string; readonly url: string; readonly snippet: string }
  urlFor(query: string, count: number): string
  bodyFor(query: string, count: number): string | undefined
}

/** Combines preset, configuration and key. Throws CONFIG_INVALID. */
export function endpointOf(config: WebSearchConfig, key: string | undefined): Endpoint {
  const preset = PRESETS[config.type]
  const { type, ...own } = config
  const { url: written, method, body, key_header, key_prefix = '', results } = { ...preset, ...own }
  const template = type === 'searxng' && written && !written.includes('{query}') ? searxng(written) : written
  const url = template === undefined ? null : URL.parse(template)
  if (template === undefined || !url || !/^https?:$/.test(url.protocol) || url.username !== '') throw searchIncomplete('url')
  const keyed = key !== undefined && key_header !== undefined ? { [key_header]: key_prefix + key } : {}
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    method,
    headers: { accept: 'application/json', ...(method === 'POST' && { 'content-type': 'application/json' }), ...keyed },
    results: results.split('.'),
    fields: { ...preset.fields, ...config.fields },
    urlFor: (query, count) => filled(template, encodeURIComponent(query), count),
    bodyFor: (query, count) => (body && method === 'POST' ? JSON.stringify(filledIn(body, query, count)) : undefined),
  }
}

const searxng = (server: string) => `${server.replace(/\/+(search)?$/, '')}/search?q={query}&format=json`

const filled = (template: string, query: string, count: number) =>
  template.replaceAll('{count}', String(count)).replaceAll('{query}', () => query)

/** The value `{count}` becomes a number. */
const filledIn = (body: NonNullable<Preset['body']>, query: string, count: number) =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      value === '{count}' ? count : typeof value === 'string' ? filled(value, query, count) : value,
    ])
  )
