// Results of tools, as they are kept: in the words of MCP, or as the text of them.
import type { CallResult } from './call-outcome.tsx'
import { isRecord } from './schema-input.tsx'

/** What a page gets of a result: its structured value, or the value of JSON in its text, or the text. */
export function valueOf({ content, structuredContent }: CallResult): unknown {
  if (structuredContent !== undefined) return structuredContent
  const text = textsOf(content)
  const value = parsed(text)
  return typeof value === 'object' && value !== null ? value : { text }
}

/** The texts of content; other content as JSON. */
export const textsOf = (content: readonly object[]): string =>
  content
    .map(part => ('type' in part && part.type === 'text' && 'text' in part ? String(part.text) : JSON.stringify(part)))
    .join('\n')

/** A value that a model or a step got: a structured result, or the texts of any other. */
export const resultOf = (value: unknown): CallResult => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : (JSON.stringify(value) ?? '') }],
  ...(isRecord(value) && { structuredContent: value }),
  isError: false,
})

/** Content of a conversation: models get a structured result as its JSON. */
export function contentResult(content: unknown, isError: boolean): CallResult {
  const parts = Array.isArray(content) ? content.filter(part => isRecord(part)) : []
  const structured = parsed(textsOf(parts))
  return { content: parts, ...(isRecord(structured) && { structuredContent: structured }), isError }
}

/** What a span has recorded: the answer of a tool, or the last item of its stream. Undefined if it is not whole. */
export function spanResult(text: unknown): CallResult | undefined {
  const answer = typeof text === 'string' ? parsed(text) : undefined
  if (!isRecord(answer)) return undefined
  const result = answer.type === 'result' && isRecord(answer.result) ? answer.result : answer
  if (!Array.isArray(result.content)) return undefined
  return {
    content: result.content.filter(part => isRecord(part)),
    ...(isRecord(result.structured) && { structuredContent: result.structured }),
    isError: result.isError === true,
  }
}

/** The value of a JSON text. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
