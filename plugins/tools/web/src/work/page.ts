import { stripResult } from '@svc/plugin-kit'
import { textOf } from './charset.ts'
import type { PageText } from './markdown.ts'

interface Input {
  readonly url: string
  readonly charset: string | undefined
  readonly html: boolean
  readonly bytes: Uint8Array
  /** Whether HTML stays as it is. */
  readonly source: boolean
}

export interface Page extends PageText {
  /** Hidden characters that were taken out of the text, each with how often. */
  readonly hidden: readonly string[]
}

/** Turns the bytes of a page into text, and HTML into Markdown; characters that a reader would not see are taken out. */
export async function readPage(input: Input): Promise<Page> {
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
