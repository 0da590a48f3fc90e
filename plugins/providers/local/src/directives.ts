import type { ContentPart, Json, ModelFailureKind, ModelMessage, ModelRequest, ToolResultPart } from '@svc/core/contracts'
import { isFailureKind } from './errors.ts'

/** A tool the message asks for. */
export interface AskedTool {
  readonly tool: string
  readonly arguments: { readonly [name: string]: Json | undefined }
}

/** What a message asks of this provider, and the text that is left. */
interface Directives {
  readonly text: string
  readonly tools: readonly AskedTool[]
  readonly fail?: { readonly kind: ModelFailureKind; readonly after: number }
  /** Milliseconds before the first piece. */
  readonly delayMs: number
  /** Milliseconds between two pieces. */
  readonly paceMs: number
}

type Growing = { -readonly [K in keyof Directives]: Directives[K] } & { tools: AskedTool[] }

/** Takes the directives out of a message: `/tool`, `/fail`, `/delay`, `/pace`, a line each. A line that is none of them is text. */
function readDirectives(message: string): Directives {
  const found: Growing = { text: message, tools: [], delayMs: 0, paceMs: 0 }
  if (!message.includes('/')) return found
  const lines = message.split('\n')
  const text = lines.filter(line => !take(line.trim(), found))
  if (text.length < lines.length) found.text = text.join('\n').trim()
  return found
}

function take(line: string, into: Growing): boolean {
  if (!line.startsWith('/')) return false
  const [, word = '', rest = ''] = /^\/([a-z]+)\s+(.*)$/s.exec(line) ?? []
  return Object.hasOwn(READERS, word) && (READERS[word]?.(rest.trim(), into) ?? false)
}

/** Each answers whether the rest of the line made sense. */
const READERS: Readonly<Record<string, (rest: string, into: Growing) => boolean>> = {
  tool(rest, into) {
    const [, tool, json = ''] = /^(\S+)\s*(.*)$/s.exec(rest) ?? []
    const args = readObject(json === '' ? '{}' : json)
    if (tool === undefined || args === undefined) return false
    into.tools.push({ tool, arguments: args })
    return true
  },
  fail(rest, into) {
    const [, kind = '', after = '0'] = /^(\w+)(?:\s+after\s+(\d{1,9}))?$/.exec(rest) ?? []
    if (!isFailureKind(kind)) return false
    into.fail = { kind, after: Number(after) }
    return true
  },
  delay: (rest, into) => milliseconds(rest, ms => (into.delayMs = ms)),
  pace: (rest, into) => milliseconds(rest, ms => (into.paceMs = ms)),
}

/** A day at most: timers cannot count further than 24 of them. */
const LONGEST_MS = 86_400_000

function milliseconds(text: string, set: (ms: number) => void): boolean {
  const ms = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (!(ms <= LONGEST_MS)) return false
  set(ms)
  return true
}

function readObject(json: string): AskedTool['arguments'] | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as AskedTool['arguments']) : undefined
  } catch {
    return undefined
  }
}

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
