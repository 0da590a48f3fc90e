import type { ContentPart } from '@svc/core/contracts'

/** The text parts of a result, joined by line breaks. */
export const contentText = (content: readonly ContentPart[]) =>
  content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')

/** Maximum parts of a result. */
export const CONTENT_PARTS = 1_000
/** Maximum characters of images and sounds in a result. */
const MEDIA = 4_000_000
/** Maximum characters of a media type (RFC 6838: twice 127 and a slash). Some providers put it into the prompt. */
const MEDIA_TYPE = 255

/** Cuts content to `limit` characters of text and `media` characters of media. Adds a note at each cut. */
export function cutContent(content: readonly ContentPart[], limit: number, media: number = MEDIA): readonly ContentPart[] {
  const kept: ContentPart[] = []
  let [textLeft, mediaLeft] = [limit, media]
  for (const [at, part] of content.entries()) {
    if (at === CONTENT_PARTS) return [...kept, contentNote(`[cut: ${content.length - at} parts more]`)]
    if (part.type === 'image' || part.type === 'audio') {
      const length = isWithin(part.mimeType, MEDIA_TYPE) ? boundedJson(part, mediaLeft)?.length : undefined
      kept.push(length === undefined ? leftOut(part) : part)
      mediaLeft -= length ?? 0
    } else {
      const [cut, length] = cutPart(part, textLeft)
      kept.push(cut)
      textLeft -= length
    }
  }
  return kept
}

/**
 * Cuts a part that is not media. Returns the part and the characters that it uses.
 * Some providers send the part as JSON, so its JSON counts. If that is too long, only the text of the part is kept.
 */
function cutPart(part: ContentPart, limit: number): readonly [ContentPart, number] {
  const length = part.type === 'text' ? part.text.length : boundedJson(part, limit)?.length
  if (length !== undefined && length <= limit) return [part, length]
  const text = textOfPart(part)
  if (text === undefined) return [leftOut(part), 0]
  return text.length > limit ? [contentNote(cutText(text, limit)), limit] : [contentNote(text), text.length]
}

function textOfPart(part: ContentPart): string | undefined {
  if (part.type === 'text') return part.text
  const { text } = (part as { resource?: { text?: unknown } }).resource ?? {}
  return typeof text === 'string' ? text : undefined
}

const leftOut = (part: ContentPart) => contentNote(`[${part.type.slice(0, 50)} left out: too large]`)
export const contentNote = (text: string): ContentPart => ({ type: 'text', text })

// a slice would keep the whole text in memory
const copied = (text: string) => Buffer.from(text, 'utf16le').toString('utf16le')

function cutText(text: string, limit: number): string {
  const kept = copied(text.slice(0, limit))
  // does not split a surrogate pair
  return `${/[\uD800-\uDBFF]$/.test(kept) ? kept.slice(0, -1) : kept}\n[cut: ${text.length - limit} characters more]`
}

/** A value as JSON; `undefined` for more than `limit` characters. Throws TypeError for a value without JSON form. */
export function boundedJson(value: unknown, limit: number): string | undefined {
  if (!isWithin(value, limit)) return undefined
  try {
    const json: string | undefined = JSON.stringify(value)
    if (json === undefined) throw new TypeError('the tool returned data that is not valid JSON')
    return json.length > limit ? undefined : json
  } catch (error) {
    // nested deeper than the stack
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** Deeper than real data, and safe to walk recursively. */
const DEPTH = 200

/** Whether a value has roughly at most `limit` characters and at most 200 levels. Stops reading at the limit. */
export function isWithin(value: unknown, limit: number): boolean {
  return weightOf(value, limit) <= limit && !isDeeper(value, DEPTH)
}

/** The rough number of characters of a value. Stops counting above `limit`. */
export function weightOf(value: unknown, limit: number): number {
  const open: unknown[] = [value]
  let left = limit
  while (open.length > 0 && left >= 0) left -= weigh(open.pop(), open, left)
  return limit - left
}

const isDeeper = (value: unknown, left: number): boolean =>
  typeof value === 'object' && value !== null && (left === 0 || Object.values(value).some(item => isDeeper(item, left - 1)))

function weigh(value: unknown, open: unknown[], left: number): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  if (ArrayBuffer.isView(value)) return left + 1
  if (Array.isArray(value)) {
    if (value.length > left) return left + 1
    for (const item of value) open.push(item)
    return value.length
  }
  let weight = 0
  for (const [name, item] of Object.entries(value)) {
    weight += name.length + 1
    if (weight > left) return weight
    open.push(item)
  }
  return weight + 1
}
