import type { Json, MessagePart, ModelFailureKind, ModelMessage, ModelRequest, ToolResultPart } from '@svc/core/contracts'
import { isFailureKind } from './errors.ts'

/** A tool that the message requests. */
export interface RequestedTool {
  readonly tool: string
  readonly arguments: { readonly [name: string]: Json | undefined }
}

/** The directives of a message, and its remaining text. */
interface Directives {
  readonly text: string
  readonly tools: readonly RequestedTool[]
  readonly fail?: { readonly kind: ModelFailureKind; readonly after: number }
  /** Milliseconds before the first piece. */
  readonly delayMs: number
  /** Milliseconds between two pieces. */
  readonly paceMs: number
}

type MutableDirectives = { -readonly [K in keyof Directives]: Directives[K] } & { tools: RequestedTool[] }

/** Extracts the directives of a message: `/tool`, `/fail`, `/delay`, `/pace`, one on each line. Any other line is text. */
function readDirectives(message: string): Directives {
  const directives: MutableDirectives = { text: message, tools: [], delayMs: 0, paceMs: 0 }
  if (!message.includes('/')) return directives
  const lines = message.split('\n')
  const text = lines.filter(line => !take(line.trim(), directives))
  if (text.length < lines.length) directives.text = text.join('\n').trim()
  return directives
}

function take(line: string, into: MutableDirectives): boolean {
  if (!line.startsWith('/')) return false
  const [, word = '', rest = ''] = /^\/([a-z]+)\s+(.*)$/s.exec(line) ?? []
  return Object.hasOwn(READERS, word) && (READERS[word]?.(rest.trim(), into) ?? false)
}

/** Each reader returns true if the rest of the line is valid. */
const READERS: Readonly<Record<string, (rest: string, into: MutableDirectives) => boolean>> = {
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

/** A delay of at most one day; timers overflow after 24 days. */
const LONGEST_MS = 86_400_000

function milliseconds(text: string, set: (ms: number) => void): boolean {
  const ms = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (!(ms <= LONGEST_MS)) return false
  set(ms)
  return true
}

function readObject(json: string): RequestedTool['arguments'] | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as RequestedTool['arguments'])
      : undefined
  } catch {
    return undefined
  }
}

/** The last message of the user, and the tool results after it. */
export interface LocalTurn extends Directives {
  /** 1 for the first message of a user. */
  readonly number: number
  /** The images, files and sounds of that message, described. */
  readonly attachments: readonly string[]
  /** Results of tools after that message. */
  readonly results: readonly ToolResultPart[]
}

/** Reads the current turn of a request. */
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
  return { ...readDirectives(last ? textOf(last) : ''), number, attachments: last ? attachmentsOf(last) : NONE, results }
}

const textOf = ({ parts }: ModelMessage): string => {
  const [first] = parts
  if (parts.length === 1 && first?.type === 'text') return first.text
  return parts
    .filter(part => part.type === 'text')
    .map(part => part.text)
    .join('\n')
}

const NONE: readonly string[] = []

/** This provider cannot see or hear. It names the type and the size of what it got. */
const attachmentsOf = ({ parts }: ModelMessage): readonly string[] =>
  parts.length === 1 && parts[0]!.type === 'text' ? NONE : parts.flatMap(part => describe(part) ?? [])

function describe(part: MessagePart): string | undefined {
  if (part.type === 'image_url') return `image at ${part.url}`
  if (part.type === 'file') return `file ${part.name === undefined ? '' : `${part.name}, `}${sizeOf(part)}`
  return part.type === 'image' || part.type === 'audio' ? `${part.type} ${sizeOf(part)}` : undefined
}

const sizeOf = ({ mimeType, data }: { readonly mimeType: string; readonly data: string }) =>
  `${mimeType}, ${Buffer.byteLength(data, 'base64')} bytes`
