import type { ContentPart, ModelMessage, StoredMessage, ToolResult } from '@svc/core/contracts'
import { boundedJson, CONTENT_PARTS, contentNote, cutContent } from '@svc/plugin-kit'

export const userMessage = (text: string): StoredMessage => ({ role: 'user', parts: [{ type: 'text', text }] })

/** The system message: the prompt of the turn or profile, then the prompt of the mode. */
export function systemMessages(prompt: string | undefined, modePrompt: string | undefined): ModelMessage[] {
  const text = [prompt, modePrompt].filter(Boolean).join('\n\n')
  return text === '' ? [] : [{ role: 'system', parts: [{ type: 'text', text }] }]
}

/** An error result with a text for the model. */
export const failure = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })

/** Checks the result of a tool, which is untrusted, and cuts it to `limit` characters. Throws TypeError for an invalid result. */
export function boundedResult(answer: unknown, limit: number): ToolResult {
  const { content, structured, isError } = (answer ?? {}) as Partial<ToolResult>
  if (!Array.isArray(content) || !content.slice(0, CONTENT_PARTS).every(isPart))
    throw new TypeError('the tool did not return { content: [{ type: "text", text }] }')
  const kept = cutContent(content as readonly ContentPart[], limit)
  const failed = isError === true ? { isError } : {}
  if (structured === undefined) return { content: kept, ...failed }
  const json = boundedJson(structured, limit)
  if (json === undefined) return { content: [...kept, contentNote(`[data left out: more than ${limit} characters]`)], ...failed }
  return { content: kept.length > 0 ? kept : [{ type: 'text', text: json }], structured, ...failed }
}

function isPart(part: unknown): boolean {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown }
  return typeof type === 'string' && (type !== 'text' || typeof text === 'string')
}
