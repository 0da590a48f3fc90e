import { textOf } from './charset.ts'

interface Input {
  readonly url: string
  readonly charset: string | undefined
  readonly html: boolean
  readonly bytes: Uint8Array
  /** Whether HTML stays as it is. */
  readonly source: boolean
}

export interface Page {
  readonly title?: string
  readonly text: string
}

/** Turns the bytes of a page into text, and HTML into Markdown. */
export async function readPage({ url, charset, html, bytes, source }: Input): Promise<Page> {
  const text = await textOf(bytes, charset, html)
  if (source || !(html || looksLikeHtml(text))) return { text }
  const { markdownOf } = await import('./markdown.ts')
  return markdownOf(text, url)
}

/** Servers that name no type send pages, too. */
const looksLikeHtml = (text: string) => /^\s*(<!doctype html|<html[\s>])/i.test(text.slice(0, 1000))
