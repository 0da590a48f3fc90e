// Entry of the worker processes of this plugin. It does not load @svc/core, and loads each library at its first use.
import { stripResult } from '@svc/plugin-kit'
import { serveWork } from '@svc/worker-pool/child'
import type { PageText } from './markdown.ts'

interface Input {
  readonly url: string
  readonly charset: string | undefined
  readonly html: boolean
  readonly bytes: Uint8Array
  /** Whether to return HTML as it is. */
  readonly source: boolean
}

interface Page extends PageText {
  /** Hidden characters that were removed from the text, with their counts. */
  readonly hidden: readonly string[]
}

/** Converts the bytes of a page to text, and HTML to Markdown. Removes characters that are invisible to a reader. */
async function readPage(input: Input): Promise<Page> {
  const { title, text: raw } = await converted(input)
  const { text, found } = stripResult(raw)
  return { ...(title !== undefined && { title: stripResult(title).text }), text, hidden: found }
}

async function converted({ url, charset, html, bytes, source }: Input): Promise<PageText> {
  const text = await textOf(bytes, charset, html)
  if (source || !(html || looksLikeHtml(text))) return { text }
  const { markdownOf } = await import('./markdown.ts')
  return markdownOf(text, url)
}

/** Some servers send HTML without a content type. */
const looksLikeHtml = (text: string) => /^\s*(<!doctype html|<html[\s>])/i.test(text.slice(0, 1000))

const LATIN = 'windows-1252'

/** Decodes as browsers do: by the byte order mark, the charset of the server, or that of the page. Otherwise as UTF-8 if it is valid. */
async function textOf(bytes: Uint8Array, charset: string | undefined, html: boolean): Promise<string> {
  const { default: sniff } = await import('html-encoding-sniffer')
  const label = known(charset)
  const said = sniff(bytes, {
    ...(label !== undefined && { transportLayerEncodingLabel: label }),
    defaultEncoding: 'x-user-defined',
    ...(!html && { maxPrescanBytes: 0 }),
  })
  if (said.toLowerCase() !== 'x-user-defined') return new TextDecoder(known(said) ?? 'utf-8').decode(bytes)
  // the last character can be incomplete
  return decodedStrictly(bytes) ?? new TextDecoder(LATIN).decode(bytes)
}

function known(label: string | undefined): string | undefined {
  try {
    return label === undefined ? undefined : new TextDecoder(label).encoding
  } catch {
    return undefined
  }
}

function decodedStrictly(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return undefined
  }
}

const work = serveWork({ read_page: readPage })

export type WebWork = typeof work
