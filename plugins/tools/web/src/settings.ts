import { schema } from '@svc/core'
import { type FetchConfig, fetchKeys } from '@svc/safe-fetch'

/** The search endpoint: a preset or a custom endpoint. */
export interface WebSearchConfig {
  /** Protocol of the endpoint; `json` is configured by the keys below. */
  type: 'searxng' | 'brave' | 'tavily' | 'serper' | 'json'
  /** URL with the placeholders `{query}` and `{count}`. Presets of public services have one. */
  url?: string
  method?: 'GET' | 'POST'
  /** JSON body with the placeholders `{query}` and `{count}`. */
  body?: Record<string, string | number | boolean>
  /** Environment variable with the key. */
  api_key_env?: string
  /** File with the key. */
  api_key_file?: string
  /** Header for the key, and the prefix of its value. */
  key_header?: string
  key_prefix?: string
  /** Path to the list of results in the response, such as `web.results`. */
  results?: string
  /** Field names of a result. */
  fields?: { title?: string; url?: string; snippet?: string }
}

/** The section `tools.web`. */
export interface WebConfig extends FetchConfig {
  convert_timeout_ms: number
  convert_memory_mb: number
  search?: WebSearchConfig
}

const text = (description: string) => ({ type: 'string', minLength: 1, maxLength: 2000, description }) as const
const number = (minimum: number, maximum: number, value: number, description: string) =>
  ({ type: 'integer', minimum, maximum, default: value, description }) as const

const SEARCH = {
  type: 'object',
  description: 'Endpoint of search_web. Without it, the tool does not exist.',
  properties: {
    type: {
      enum: ['searxng', 'brave', 'tavily', 'serper', 'json'],
      description: 'Protocol of the endpoint; json is configured by the other keys.',
    },
    url: text('URL with {query} and {count}. Public services have a default; for searxng, set the URL of the server.'),
    method: { enum: ['GET', 'POST'], description: 'HTTP method.' },
    body: {
      type: 'object',
      additionalProperties: { type: ['string', 'number', 'boolean'] },
      description: 'JSON body with {query} and {count}.',
    },
    api_key_env: text('Environment variable with the key.'),
    api_key_file: text('File with the key.'),
    key_header: { ...text('Header for the key.'), pattern: '^[A-Za-z0-9-]+$' },
    key_prefix: text('Prefix of the key in that header, such as "Bearer ".'),
    results: text('Path to the list of results in the response, such as web.results.'),
    fields: {
      type: 'object',
      properties: {
        title: text('Field of the title.'),
        url: text('Field of the URL.'),
        snippet: text('Field of the summary.'),
      },
      additionalProperties: false,
      description: 'Field names of a result.',
    },
  },
  required: ['type'],
  additionalProperties: false,
} as const

export const webConfig = schema<WebConfig>({
  type: 'object',
  properties: {
    ...fetchKeys({ timeoutMs: 30_000, longestMs: 600_000, maxBytes: 2_097_152 }),
    convert_timeout_ms: number(100, 60_000, 8_000, 'Time limit of the conversion to Markdown in milliseconds.'),
    convert_memory_mb: number(64, 4096, 256, 'Memory limit of the conversion to Markdown in megabytes.'),
    search: SEARCH,
  },
  additionalProperties: false,
})
