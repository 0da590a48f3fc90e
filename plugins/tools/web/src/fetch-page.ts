import type { BoundedWork } from '@svc/worker-pool'
import { codeOf, type Use } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import { type GuardedFetch, readBody } from '@svc/safe-fetch'
import { toolOf } from '@svc/plugin-kit'
import { pageBinary, pageStatus, pageTooHard } from './errors.ts'
import { formOf, looksBinary } from './form.ts'
import { PAGE, PARAMETERS, type PageArguments } from './page-schema.ts'
import type { WebConfig } from './settings.ts'
import { windowOf } from './window.ts'
import type { WebWork } from './work.ts'

const ACCEPT = 'text/html,application/xhtml+xml,text/markdown,text/plain,application/json,application/xml;q=0.9,*/*;q=0.5'
const CHARACTERS = 20_000
/** What starting a process may take on a busy machine. */
const SLACK_MS = 5_000

/** Milliseconds that a page may wait to be turned into Markdown, behind others. */
export const WAIT_MS = 10_000

/** Makes `fetch_page`: a page of the web as Markdown, some characters at a time. */
export function createFetchPage(web: GuardedFetch, work: BoundedWork<WebWork>, config: WebConfig): Tool {
  return toolOf<PageArguments>({
    description:
      'Fetches a page of the web by its URL and answers it as Markdown (text and JSON as they are). Long pages come in parts: read on with `start`.',
    category: 'web',
    effects: ['network'],
    parameters: PARAMETERS,
    result: PAGE,
    timeoutMs: config.timeout_ms + config.convert_timeout_ms + WAIT_MS + SLACK_MS,
    async call({ url, start = 0, max_characters: most = CHARACTERS, format = 'markdown' }, use) {
      const got = await download(web, url, use)
      const page = await converted(work, { ...got, source: format === 'source' }, use)
      const { content, ...window } = windowOf(page.text, start, most, {
        cutAt: got.cut ? config.max_bytes : undefined,
        hidden: page.hidden,
      })
      const told = {
        url: got.url,
        content_type: got.type,
        ...(page.title !== undefined && { title: page.title }),
        content,
        ...window,
      }
      return { content: [{ type: 'text', text: shown(told) }], structured: told }
    },
  })
}

interface Told {
  readonly url: string
  readonly title?: string
  readonly content: string
  readonly note?: string
}

const shown = ({ url, title, content, note }: Told) =>
  [title === undefined ? url : `${title}\n${url}`, content, ...(note === undefined ? [] : [`[${note}]`])].join('\n\n')

interface Got {
  readonly url: string
  /** The type without its parameters. */
  readonly type: string
  readonly charset: string | undefined
  readonly html: boolean
  readonly bytes: Uint8Array
  readonly cut: boolean
}

async function download(web: GuardedFetch, asked: string, use: Use): Promise<Got> {
  const response = await web.fetch(asked, use, { headers: { accept: ACCEPT } })
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

async function converted(work: BoundedWork<WebWork>, { url, charset, html, bytes, source }: Got & { source: boolean }, use: Use) {
  try {
    return await work.run('read_page', { url, charset, html, bytes, source }, use)
  } catch (error) {
    throw /^WORK_(TIMEOUT|MEMORY)$/.test(codeOf(error) ?? '') ? pageTooHard(shortened(url)) : error
  }
}

const LONGEST_URL = 300
const shortened = (url: string) => (url.length > LONGEST_URL ? `${url.slice(0, LONGEST_URL)}…` : url)
