import { schema } from '@svc/core'
import { type FetchConfig, fetchKeys } from '@svc/safe-fetch'

/** Where `search_web` asks: a preset, or an endpoint in words of its own. */
export interface SearchConfig {
  /** What the endpoint speaks; `json` takes everything from the keys below. */
  type: 'searxng' | 'brave' | 'tavily' | 'serper' | 'json'
  /** Where it is; `{query}` and `{count}` are filled in. A preset of a public service has its own. */
  url?: string
  method?: 'GET' | 'POST'
  /** The JSON to post; texts `{query}` and `{count}` in it are filled in. */
  body?: Record<string, string | number | boolean>
  /** The environment variable that holds the key. */
  api_key_env?: string
  /** The file that holds the key. */
  api_key_file?: string
  /** The header that carries the key, and what stands before it there. */
  key_header?: string
  key_prefix?: string
  /** The path to the list of results in the answer, like `web.results`. */
  results?: string
  /** What a result calls its title, address and summary. */
  fields?: { title?: string; url?: string; snippet?: string }
}

/** The section `tools.web`. */
export interface WebConfig extends FetchConfig {
  convert_timeout_ms: number
  convert_memory_mb: number
  search?: SearchConfig
}

const text = (description: string) => ({ type: 'string', minLength: 1, maxLength: 2000, description }) as const
const number = (minimum: number, maximum: number, value: number, description: string) =>
  ({ type: 'integer', minimum, maximum, default: value, description }) as const

const SEARCH = {
  type: 'object',
  description: 'Where search_web asks; without it there is no such tool.',
  properties: {
    type: {
      enum: ['searxng', 'brave', 'tavily', 'serper', 'json'],
      description: 'What the endpoint speaks; json takes everything from the other keys.',
    },
    url: text('Where it is, with {query} and {count}; a public service has its own, searxng needs the address of the server.'),
    method: { enum: ['GET', 'POST'], description: 'How it is asked.' },
    body: {
      type: 'object',
      additionalProperties: { type: ['string', 'number', 'boolean'] },
      description: 'The JSON to post, with {query} and {count}.',
    },
    api_key_env: text('The environment variable that holds the key.'),
    api_key_file: text('The file that holds the key.'),
    key_header: { ...text('The header that carries the key.'), pattern: '^[A-Za-z0-9-]+$' },
    key_prefix: text('What stands before the key in that header, like "Bearer ".'),
    results: text('The path to the list of results in the answer, like web.results.'),
    fields: {
      type: 'object',
      properties: {
        title: text('What a result calls its title.'),
        url: text('What it calls its address.'),
        snippet: text('What it calls its summary.'),
      },
      additionalProperties: false,
      description: 'What a result calls its parts.',
    },
  },
  required: ['type'],
  additionalProperties: false,
} as const

export const webConfig = schema<WebConfig>({
  type: 'object',
  properties: {
    ...fetchKeys({ timeoutMs: 30_000, longestMs: 600_000, maxBytes: 2_097_152 }),
    convert_timeout_ms: number(100, 60_000, 8_000, 'Milliseconds that turning a page into Markdown may take.'),
    convert_memory_mb: number(64, 4096, 256, 'Megabytes that turning a page into Markdown may take.'),
    search: SEARCH,
  },
  additionalProperties: false,
})
