const MOST_CHARACTERS = 200_000

export interface PageArguments {
  readonly url: string
  readonly start?: number
  readonly max_characters?: number
  readonly format?: 'markdown' | 'source'
}

export const PARAMETERS = {
  type: 'object',
  properties: {
    url: { type: 'string', minLength: 1, maxLength: 8192, description: 'the whole URL, http or https' },
    start: { type: 'integer', minimum: 0, description: 'the character to begin with; default 0' },
    max_characters: {
      type: 'integer',
      minimum: 1,
      maximum: MOST_CHARACTERS,
      description: 'how many characters to answer; default 20000',
    },
    format: { enum: ['markdown', 'source'], description: 'source answers HTML as it is; default markdown' },
  },
  required: ['url'],
  additionalProperties: false,
} as const

export const PAGE = {
  type: 'object',
  properties: {
    url: { type: 'string', description: 'where the page came from, after redirects' },
    content_type: { type: 'string' },
    title: { type: 'string' },
    content: { type: 'string' },
    start: { type: 'integer' },
    characters: { type: 'integer', description: 'how many the page has in all' },
    next_start: { type: 'integer', description: 'where to read on, when there is more' },
    note: { type: 'string', description: 'what is cut, or odd' },
  },
  required: ['url', 'content_type', 'content', 'start', 'characters'],
  additionalProperties: false,
} as const
