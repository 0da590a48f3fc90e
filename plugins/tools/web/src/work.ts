// What the worker processes of this plugin are started with: no @svc/core here, and each library at its first use.
import { stripResult } from '@svc/plugin-kit'
import { serveWork } from '@svc/worker-pool/child'
import type { PageText } from './markdown.ts'

interface Input {
  readonly url: string
  readonly charset: string | undefined
  readonly html: boolean
  readonly bytes: Uint8Array
  /** Whether HTML stays as it is. */
  readonly source: boolean
}

interface Page extends PageText {
  /** Hidden characters that were taken out of the text, each with how often. */
  readonly hidden: readonly string[]
}

/** Turns the bytes of a page into text, and HTML into Markdown; characters that a reader would not see are taken out. */
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

/** Servers that name no type send pages, too. */
const looksLikeHtml = (text: string) => /^\s*(<!doctype html|<html[\s>])/i.test(text.slice(0, 1000))

const LATIN = 'windows-1252'

/** Decodes as browsers do: byte order mark, the server's word, the page's own word. Where nobody says, it is UTF-8 if it can be. */
async function textOf(bytes: Uint8Array, charset: string | undefined, html: boolean): Promise<string> {
  const { default: sniff } = await import('html-encoding-sniffer')
  const label = known(charset)
  const said = sniff(bytes, {
    ...(label !== undefined && { transportLayerEncodingLabel: label }),
    defaultEncoding: 'x-user-defined',
    ...(!html && { maxPrescanBytes: 0 }),
  })
  if (said.toLowerCase() !== 'x-user-defined') return new TextDecoder(known(said) ?? 'utf-8').decode(bytes)
  // the last character may be cut
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
