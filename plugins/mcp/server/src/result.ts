import type { ContentPart, ToolResult } from '@svc/core/contracts'

/** A result that says what went wrong. */
export const failure = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })

export interface EncodedResult {
  readonly result: ToolResult
  /** The result as the protocol writes it. */
  readonly json: string
}

/**
 * A tool is somebody's code: what it answered, looked at and written once. More than `limit` bytes become an error that says so. Throws TypeError for what is
 * no result.
 */
export function encodeResult(answer: ToolResult, limit: number): EncodedResult {
  const { content, structured, isError, meta } = (answer ?? {}) as Partial<ToolResult>
  if (!Array.isArray(content) || !content.every(isPart))
    throw new TypeError('the tool did not answer { content: [{ type: "text", text }] }')
  const kept = content.length === 0 && structured !== undefined ? [asText(structured)] : (content as readonly ContentPart[])
  const result: ToolResult = {
    content: kept,
    ...(structured === undefined ? {} : { structured }),
    ...(isError === true ? { isError } : {}),
    ...(meta === undefined ? {} : { meta }),
  }
  const json = within(result, limit)
  if (json !== undefined) return { result, json }
  const instead = failure(`The result was left out: it is larger than ${limit} bytes. Ask for less.`)
  return { result: instead, json: JSON.stringify(wireResult(instead)) }
}

/** Its JSON, or `undefined` where it is too large, or nested deeper than can be written. */
function within(result: ToolResult, limit: number): string | undefined {
  try {
    const json = JSON.stringify(wireResult(result))
    // a character is a byte at least, and three at most
    return json.length <= limit / 3 || Buffer.byteLength(json) <= limit ? json : undefined
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** A result in the protocol's words. */
export const wireResult = ({ content, structured, isError, meta }: ToolResult) => ({
  content,
  ...(structured === undefined ? {} : { structuredContent: structured }),
  ...(isError ? { isError } : {}),
  ...(meta === undefined ? {} : { _meta: meta }),
})

const asText = (structured: unknown): ContentPart => ({ type: 'text', text: JSON.stringify(structured) })

function isPart(part: unknown): boolean {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown }
  return typeof type === 'string' && (type !== 'text' || typeof text === 'string')
}
