import { visible } from './visible-text.ts'

/** Images that browsers and models read. SVG is none: it is a document. */
export const IMAGE_TYPES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
/** Larger images are named only: the page would have to decode each that scrolls by. */
const LONGEST_IMAGE = 4 * 1024 * 1024

/** A size in words. */
export function sizeText(bytes: number): string {
  if (bytes < 1_024) return `${bytes} bytes`
  const kib = bytes / 1_024
  return kib < 1_024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1_024).toFixed(1)} MiB`
}

// not a pattern for the end of a text: of a text of many `=` that ends otherwise, it would try each
const padding = (data: string) => (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0)

/** The bytes that a base64 text stands for. */
const bytesOf = (data: string): number => Math.floor((data.length * 3) / 4) - padding(data)

interface AttachedProps {
  readonly kind: string
  readonly mediaType: string
  /** In base64. */
  readonly data: string
  readonly name?: string | undefined
}

/** An image or a file of a message: an image as a small picture, anything else as its name, type and size. */
export function Attached({ kind, mediaType, data, name }: AttachedProps) {
  const about = [name, mediaType, sizeText(bytesOf(data))].filter(text => text !== undefined && text !== '').join(', ')
  const isShown = kind === 'image' && IMAGE_TYPES.includes(mediaType) && data.length <= LONGEST_IMAGE && BASE64.test(data)
  return (
    <figure className="attached">
      {isShown && <img src={`data:${mediaType};base64,${data}`} alt={visible(name ?? 'Image of the message')} decoding="async" />}
      <figcaption className="muted small">{visible(about)}</figcaption>
    </figure>
  )
}
