import type { ContentPart, ToolResult } from '@svc/core/contracts'

/** Creates a result that reports a failure. */
export const failure = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })

export interface EncodedResult {
  readonly result: ToolResult
  /** The result in the form of the protocol. */
  readonly json: string
}

/**
 * Validates and serializes the result of a tool. A result of more than `limit` bytes becomes a result that reports this. Throws TypeError if the value is not a
 * result.
 */
export function encodeResult(answer: ToolResult, limit: number): EncodedResult {
  const { content, structured, isError, meta } = (answer ?? {}) as Partial<ToolResult>
  if (!Array.isArray(content) || !content.every(isPart))
    throw new TypeError('the tool did not return { content: [{ type: "text", text }] }')
  const kept = content.length === 0 && structured !== undefined ? [asText(structured)] : (content as readonly ContentPart[])
  const result: ToolResult = {
    content: kept,
    ...(structured === undefined ? {} : { structured }),
    ...(isError === true ? { isError } : {}),
    ...(meta === undefined ? {} : { meta }),
  }
  const json = jsonWithin(result, limit)
  if (json !== undefined) return { result, json }
  const instead = failure(`The result was omitted because it is larger than ${limit} bytes. Request less.`)
  return { result: instead, json: JSON.stringify(wireResult(instead)) }
}

/** Returns JSON, or `undefined` if the result is too large or nested too deeply for JSON.stringify. */
function jsonWithin(result: ToolResult, limit: number): string | undefined {
  try {
    const json = JSON.stringify(wireResult(result))
    // a UTF-16 character takes at most three bytes, so most results need no count
    return json.length <= limit / 3 || Buffer.byteLength(json) <= limit ? json : undefined
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** Converts a result to the form of the protocol. */
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

/** Returns message and hint of an error without stack and local paths, or `fallback`. The value can be anything, even an object that throws on access. */
export function errorTextOf(error: unknown, fallback: string): string {
  try {
    const { message, hint } = (typeof error === 'string' ? { message: error } : Object(error)) as {
      message?: unknown
      hint?: unknown
    }
    if (typeof message !== 'string' || message.trim() === '') return fallback
    const text = message.replace(SYSTEM_ERROR, '$1').split(STACK, 1)[0]!
    return typeof hint === 'string' && hint.trim() !== '' ? `${text}; ${hint}` : text
  } catch {
    return fallback
  }
}

/** Errors of the operating system have a path after the comma: `ENOENT: no such file or directory, open '/srv/…'`. */
const SYSTEM_ERROR = /^(E[A-Z0-9]{2,}: [^,]*),[^]*$/
/** The message of an error can contain the stack of its cause. */
const STACK = /\n\s+at /
