import { gfm } from '@joplin/turndown-plugin-gfm'
import domino from '@mixmark-io/domino'
import TurndownService from 'turndown'

/** Text of a page. */
export interface PageText {
  readonly title?: string
  readonly text: string
}

/** Elements without visible text. */
const UNSEEN = [
  'script',
  'style',
  'noscript',
  'template',
  'iframe',
  'object',
  'embed',
  'svg',
  'canvas',
  'audio',
  'video',
  'head',
  'dialog',
] as const
const LONGEST_TITLE = 500

export function markdownOf(html: string, url: string): PageText {
  const document = domino.createDocument(html)
  const base = URL.parse(document.querySelectorAll('base[href]')[0]?.getAttribute('href') ?? '', url)?.href ?? url
  const title = document.title.trim().replaceAll(/\s+/g, ' ').slice(0, LONGEST_TITLE)
  for (const [tag, attribute] of [
    ['a', 'href'],
    ['img', 'src'],
  ] as const)
    for (const element of Array.from(document.getElementsByTagName(tag))) resolve(element, attribute, base)
  const text = document.body ? service().turndown(document.body as unknown as TurndownService.Node) : ''
  return { ...(title !== '' && { title }), text: text.replaceAll(/\n{3,}/g, '\n\n').trim() }
}

interface Linking {
  getAttribute(name: string): string | null
  setAttribute(name: string, value: string): void
  removeAttribute(name: string): void
}

/** Makes a URL absolute. Removes URLs that are useless for a reader (data, javascript). */
function resolve(element: Linking, attribute: string, base: string): void {
  const written = element.getAttribute(attribute)
  if (written === null) return
  const address = URL.parse(written, base)
  if (address && /^(https?|mailto|tel|ftp):$/.test(address.protocol)) element.setAttribute(attribute, address.href)
  else element.removeAttribute(attribute)
}

function service(): TurndownService {
  const turndown = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', hr: '---' })
  turndown.use(gfm)
  turndown.remove([...UNSEEN] as TurndownService.Filter)
  return turndown
}
