import type { ToolResult } from '@svc/core/contracts'

/** JSON Schema of a path that a caller writes. */
export const pathOf = (description: string) => ({ type: 'string', minLength: 1, maxLength: 4096, description }) as const

/** JSON Schema of an answer: every member is there unless it is named in `optional`. */
export const answer = <P extends object>(properties: P, optional: readonly string[] = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
  additionalProperties: false,
})

/** An answer of one line. */
export const inOneLine = (text: string, structured: ToolResult['structured']): ToolResult => ({
  content: [{ type: 'text', text }],
  ...(structured === undefined ? {} : { structured }),
})

/** `1 file`, `2 files`. */
export const counted = (count: number, word: string): string => `${count} ${count === 1 ? word : `${word}s`}`
