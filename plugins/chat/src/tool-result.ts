import type { ContentPart, ToolResult } from '@svc/core/contracts'

/** A result that says what went wrong, for the model to read. */
export const failure = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })

/** The texts of a result, a line each; what else is in it is left out. */
export const textOf = (content: readonly ContentPart[]) =>
  content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')

/** Parts of a result, and characters of images and the like in it. */
const PARTS = 1_000
const MEDIA = 4_000_000

/**
 * A tool is somebody's code: what it answers is looked at before anybody relies on it, and no more of it than `limit` characters. Throws TypeError for what is
 * no result.
 */
export function boundedResult(answer: unknown, limit: number): ToolResult {
  const { content, structured, isError } = (answer ?? {}) as Partial<ToolResult>
  if (!Array.isArray(content) || !content.slice(0, PARTS).every(isPart))
    throw new TypeError('the tool did not answer { content: [{ type: "text", text }] }')
  const kept = cutContent(content as readonly ContentPart[], limit)
  const failed = isError === true ? { isError } : {}
  if (structured === undefined) return { content: kept, ...failed }
  const json = jsonOf(structured, limit)
  if (json === undefined) return { content: [...kept, note(`[data left out: more than ${limit} characters]`)], ...failed }
  return { content: kept.length > 0 ? kept : [{ type: 'text', text: json }], structured, ...failed }
}

function isPart(part: unknown): boolean {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown }
  return typeof type === 'string' && (type !== 'text' || typeof text === 'string')
}

/** The content with at most so many characters of text, with notes where something was cut. */
export function cutContent(content: readonly ContentPart[], limit: number, media: number = MEDIA): readonly ContentPart[] {
  const kept: ContentPart[] = []
  let [text, other] = [limit, media]
  for (const [at, part] of content.entries()) {
    if (at === PARTS) return [...kept, note(`[cut: ${content.length - at} parts more]`)]
    if (part.type === 'text') {
      kept.push(part.text.length > text ? note(cutText(part.text, text)) : part)
      text = Math.max(0, text - part.text.length)
    } else {
      const json = jsonOf(part, other)
      kept.push(json === undefined ? note(`[${part.type.slice(0, 50)} left out: too large]`) : part)
      other -= json?.length ?? 0
    }
  }
  return kept
}

const note = (text: string): ContentPart => ({ type: 'text', text })

// a slice would keep the whole text in memory as long as it lives
const copied = (text: string) => Buffer.from(text, 'utf16le').toString('utf16le')

function cutText(text: string, limit: number): string {
  const kept = copied(text.slice(0, limit))
  // never half of a character of two
  return `${/[\uD800-\uDBFF]$/.test(kept) ? kept.slice(0, -1) : kept}\n[cut: ${text.length - limit} characters more]`
}

/** A value as JSON; `undefined` where that has more than `limit` characters. Throws TypeError for what is none. */
function jsonOf(value: unknown, limit: number): string | undefined {
  if (!isWithin(value, limit)) return undefined
  try {
    const json: string | undefined = JSON.stringify(value)
    if (json === undefined) throw new TypeError('the tool answered data that is no JSON')
    return json.length > limit ? undefined : json
  } catch (error) {
    // nested deeper than the stack
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** Deeper than anybody means, and no trouble for whoever walks it. */
const DEPTH = 200

/** Whether a value has at most so many characters, roughly, and is not nested without end; looks at no more of it than that. */
export function isWithin(value: unknown, limit: number): boolean {
  return weightOf(value, limit) <= limit && !isDeeper(value, DEPTH)
}

/** The characters of a value, roughly; more than `limit` where it has more, without a look at the rest. */
export function weightOf(value: unknown, limit: number): number {
  const open: unknown[] = [value]
  let left = limit
  while (open.length > 0 && left >= 0) left -= weigh(open.pop(), open, left)
  return limit - left
}

const isDeeper = (value: unknown, left: number): boolean =>
  typeof value === 'object' && value !== null && (left === 0 || Object.values(value).some(one => isDeeper(one, left - 1)))

function weigh(value: unknown, open: unknown[], left: number): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  if (ArrayBuffer.isView(value)) return left + 1
  if (Array.isArray(value)) {
    if (value.length > left) return left + 1
    for (const one of value) open.push(one)
    return value.length
  }
  let weight = 0
  for (const [name, one] of Object.entries(value)) {
    weight += name.length + 1
    if (weight > left) return weight
    open.push(one)
  }
  return weight + 1
}
