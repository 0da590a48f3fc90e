import { codeOf, type CallContext } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import { toolOf } from '@svc/plugin-kit'
import { type GuardedFetch, readBody } from '@svc/safe-fetch'
import type { BoundedWork } from '@svc/worker-pool'
import { pageBinary, pageStatus, pageTooHard } from './errors.ts'
import type { WebConfig } from './settings.ts'
import type { WebWork } from './work.ts'

const ACCEPT = 'text/html,application/xhtml+xml,text/markdown,text/plain,application/json,application/xml;q=0.9,*/*;q=0.5'
const CHARACTERS = 20_000
/** Time to start a process on a busy machine. */
const SLACK_MS = 5_000

/** Maximum milliseconds that a page waits for its conversion. */
export const WAIT_MS = 10_000

/** Creates `fetch_page`, which returns a web page as Markdown, in parts. */
export function createFetchPage(web: GuardedFetch, work: BoundedWork<WebWork>, config: WebConfig): Tool {
  return toolOf<PageArguments>({
    description:
      'Fetches a web page by its URL and returns it as Markdown (text and JSON as they are). Long pages come in parts: continue with `start`.',
    category: 'web',
    effects: ['network'],
    parameters: PARAMETERS,
    result: PAGE,
    timeoutMs: config.timeout_ms + config.convert_timeout_ms + WAIT_MS + SLACK_MS,
    async call({ url, start = 0, max_characters: most = CHARACTERS, format = 'markdown' }, ctx) {
      const got = await download(web, url, ctx)
      const page = await converted(work, { ...got, source: format === 'source' }, ctx)
      const { content, ...window } = windowOf(page.text, start, most, {
        cutAt: got.cut ? config.max_bytes : undefined,
        hidden: page.hidden,
      })
      const result = {
        url: got.url,
        content_type: got.type,
        ...(page.title !== undefined && { title: page.title }),
        content,
        ...window,
      }
      return { content: [{ type: 'text', text: shown(result) }], structured: result }
    },
  })
}

interface PageResult {
  readonly url: string
  readonly title?: string
  readonly content: string
  readonly note?: string
}

const shown = ({ url, title, content, note }: PageResult) =>
  [title === undefined ? url : `${title}\n${url}`, content, ...(note === undefined ? [] : [`[${note}]`])].join('\n\n')

interface Got {
  readonly url: string
  /** Content type without parameters. */
  readonly type: string
  readonly charset: string | undefined
  readonly html: boolean
  readonly bytes: Uint8Array
  readonly cut: boolean
}

async function download(web: GuardedFetch, asked: string, ctx: CallContext): Promise<Got> {
  const response = await web.fetch(asked, ctx, { headers: { accept: ACCEPT } })
  const { status, headers, url } = response
  const { kind, type, charset } = formOf(headers['content-type'])
  if (status < 200 || status > 299 || kind === 'binary') {
    response.discard()
    throw kind === 'binary' && status < 300 ? pageBinary(shortened(url), type) : pageStatus(shortened(url), status)
  }
  const { bytes, cut } = await readBody(response.body, { cut: true })
  if (looksBinary(bytes)) throw pageBinary(shortened(url), type)
  return { url, type, charset, html: kind === 'html', bytes, cut }
}

async function converted(
  work: BoundedWork<WebWork>,
  { url, charset, html, bytes, source }: Got & { source: boolean },
  ctx: CallContext
) {
  try {
    return await work.run('read_page', { url, charset, html, bytes, source }, ctx)
  } catch (error) {
    throw /^WORK_(TIMEOUT|MEMORY)$/.test(codeOf(error) ?? '') ? pageTooHard(shortened(url)) : error
  }
}

const LONGEST_URL = 300
const shortened = (url: string) => (url.length > LONGEST_URL ? `${url.slice(0, LONGEST_URL)}…` : url)

/** The kind of a page according to its server. */
interface Form {
  readonly kind: 'html' | 'text' | 'binary'
  /** Content type without parameters, in lower case; empty if the server sends none. */
  readonly type: string
  readonly charset: string | undefined
}

const HTML = /^(text\/html|application\/xhtml\+xml)$/
const TEXT =
  /^(text\/.+|application\/(json|xml|javascript|ecmascript|yaml|x-yaml|toml|sql|graphql|rtf|x-sh|x-httpd-php|x-ndjson|jsonl)|.+\+(json|xml|yaml)|message\/.+)$/
/** Generic types that servers send for any file. */
const ANY = /^(|application\/octet-stream|binary\/octet-stream|application\/x-unknown)$/

function formOf(contentType: string | undefined): Form {
  const [first = '', ...parameters] = (contentType ?? '').split(';')
  const type = first.trim().toLowerCase()
  const charset = parameters.map(parameter => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/i.exec(parameter)?.[1]).find(Boolean)
  const kind = HTML.test(type) ? 'html' : TEXT.test(type) || ANY.test(type) ? 'text' : 'binary'
  return { kind, type, charset }
}

const HEAD = 1024

/** Whether bytes are binary, regardless of their content type. UTF-16 also contains zero bytes, but starts with a byte order mark. */
function looksBinary(bytes: Uint8Array): boolean {
  const marked = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)
  return !marked && bytes.subarray(0, HEAD).includes(0)
}

const MOST_CHARACTERS = 200_000

interface PageArguments {
  readonly url: string
  readonly start?: number
  readonly max_characters?: number
  readonly format?: 'markdown' | 'source'
}

const PARAMETERS = {
  type: 'object',
  properties: {
    url: { type: 'string', minLength: 1, maxLength: 8192, description: 'complete URL, http or https' },
    start: { type: 'integer', minimum: 0, description: 'first character; default 0' },
    max_characters: {
      type: 'integer',
      minimum: 1,
      maximum: MOST_CHARACTERS,
      description: 'maximum number of characters; default 20000',
    },
    format: { enum: ['markdown', 'source'], description: 'source returns HTML as it is; default markdown' },
  },
  required: ['url'],
  additionalProperties: false,
} as const

const PAGE = {
  type: 'object',
  properties: {
    url: { type: 'string', description: 'final URL, after redirects' },
    content_type: { type: 'string' },
    title: { type: 'string' },
    content: { type: 'string' },
    start: { type: 'integer' },
    characters: { type: 'integer', description: 'total number of characters' },
    next_start: { type: 'integer', description: 'start of the next part, if there is one' },
    note: { type: 'string', description: 'notes on truncated or removed text' },
  },
  required: ['url', 'content_type', 'content', 'start', 'characters'],
  additionalProperties: false,
} as const

/** A part of a page. */
interface Window {
  readonly content: string
  readonly start: number
  readonly characters: number
  readonly next_start?: number
  readonly note?: string
}

/** Earlier changes of the text. */
interface Done {
  /** Byte limit at which it was truncated. */
  readonly cutAt?: number | undefined
  /** Hidden characters that were removed. */
  readonly hidden?: readonly string[]
}

/** Returns `most` characters of a text from `start` on, without splitting surrogate pairs. */
function windowOf(text: string, start: number, most: number, { cutAt, hidden = [] }: Done = {}): Window {
  const from = whole(text, Math.min(start, text.length))
  const end = whole(text, from + most) === from ? from + 2 : whole(text, from + most)
  const more = end < text.length
  const notes = [
    ...(text === '' ? ['The page is empty.'] : start >= text.length ? [`The page ends before character ${start}.`] : []),
    ...(more ? [`Characters ${from} to ${end} of ${text.length}; continue with start ${end}.`] : []),
    ...(cutAt === undefined ? [] : [`The page exceeds ${cutAt} bytes; the rest is missing.`]),
    ...(hidden.length === 0 ? [] : [`Removed hidden characters: ${hidden.slice(0, MOST_HIDDEN).join(', ')}.`]),
  ]
  const note = notes.length > 0 ? { note: notes.join(' ') } : {}
  return { content: text.slice(from, end), start: from, characters: text.length, ...(more && { next_start: end }), ...note }
}

/** Limit on the kinds of hidden characters that the note names. */
const MOST_HIDDEN = 10

/** The position, or the previous one if it splits a character. */
const whole = (text: string, at: number) => {
  const splits = at > 0 && at < text.length && /[\ud800-\udbff]/.test(text[at - 1]!) && /[\udc00-\udfff]/.test(text[at]!)
  return splits ? at - 1 : at
}
