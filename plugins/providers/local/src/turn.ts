import type { ContentPart, ModelMessage, ModelRequest, ToolResultPart } from '@svc/core/contracts'
import { type Directives, readDirectives } from './directives.ts'

/** Where a conversation stands: what its last user said, and what came back since. */
export interface LocalTurn extends Directives {
  /** 1 for the first message of a user. */
  readonly number: number
  /** What the tools answered since that message. */
  readonly results: readonly ToolResultPart[]
}

/** Reads the turn that the request is about. */
export function readTurn(request: ModelRequest): LocalTurn {
  let number = 0
  let last: ModelMessage | undefined
  let results: ToolResultPart[] = []
  for (const message of request.messages) {
    if (message.role === 'user') {
      number++
      last = message
      results = []
    } else if (message.role === 'tool') results.push(...message.parts.filter(part => part.type === 'tool_result'))
  }
  return { ...readDirectives(last ? textOf(last) : ''), number, results }
}

const textOf = ({ parts }: ModelMessage): string => {
  const [first] = parts
  if (parts.length === 1 && first?.type === 'text') return first.text
  return parts
    .filter(part => part.type === 'text')
    .map(part => part.text)
    .join('\n')
}

/** What a tool answered, as text. */
export const wordsOf = (content: readonly ContentPart[]): string =>
  content.map(part => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n')
