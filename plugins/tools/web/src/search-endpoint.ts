import { searchIncomplete } from './errors.ts'
import type { SearchConfig } from './settings.ts'

/** What one service of search speaks. */
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
const PRESETS: Readonly<Record<SearchConfig['type'], Preset>> = {
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

/** An endpoint that is ready to be asked. */
export interface Endpoint {
  /** Its name or address, which may be reached wherever it lies. */
  readonly host: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly results: readonly string[]
  readonly fields: { readonly title: string; readonly url: string; readonly snippet: string }
  urlFor(query: string, count: number): string
  bodyFor(query: string, count: number): string | undefined
}

/** Puts preset, configuration and key together. Throws CONFIG_INVALID. */
export function endpointOf(config: SearchConfig, key: string | undefined): Endpoint {
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

/** A value that is `{count}` alone is a number. */
const filledIn = (body: NonNullable<Preset['body']>, query: string, count: number) =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      value === '{count}' ? count : typeof value === 'string' ? filled(value, query, count) : value,
    ])
  )
