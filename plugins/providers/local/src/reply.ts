import type { ModelRequest } from '@svc/core/contracts'
import type { AskedTool } from './directives.ts'
import { sampleOf } from './sample.ts'
import { type LocalTurn, wordsOf } from './turn.ts'

/** What the model does next: it wants tools, or it says something (the texts, joined). */
export type Reply = { readonly calls: readonly AskedTool[] } | { readonly say: readonly string[] }

/** Decides the reply. Pure: the same request, the same reply. */
export function replyTo(request: ModelRequest, turn: LocalTurn): Reply {
  const offered = (name: string) => request.toolChoice !== 'none' && (request.tools ?? []).some(tool => tool.name === name)
  if (turn.results.length === 0) {
    const calls = turn.tools.filter(call => offered(call.tool))
    if (calls.length > 0) return { calls }
    const forced = forcedTool(request)
    if (forced !== undefined) return { calls: [{ tool: forced, arguments: {} }] }
  }
  if (request.responseSchema !== undefined) return { say: [JSON.stringify(sampleOf(request.responseSchema, turn.text))] }
  return { say: [...told(turn, offered), ...restated(request, turn)] }
}

/** The tool that must be called though the message names none. */
function forcedTool({ toolChoice, tools = [] }: ModelRequest): string | undefined {
  const wanted = toolChoice === 'required' ? tools[0]?.name : typeof toolChoice === 'object' ? toolChoice.tool : undefined
  return tools.some(tool => tool.name === wanted) ? wanted : undefined
}

/** A line for each tool: what it answered, or that there is none of that name. */
function told(turn: LocalTurn, offered: (name: string) => boolean): string[] {
  const answers = turn.results.map(one => `${one.tool} ${one.isError ? 'failed' : 'answered'}: ${wordsOf(one.content)}\n`)
  const missing = turn.tools.filter(call => !offered(call.tool)).map(call => `I was not offered the tool ${call.tool}.\n`)
  return [...answers, ...missing]
}

const PLAIN = 'You said: '
const OTHERS = ['I heard: ', 'Your message was: ', 'You wrote: ', 'As I understand it: '] as const

/** The message again, in the phrasing that message and temperature choose; from the second turn on with the turn's number. */
function restated(request: ModelRequest, { text, number }: LocalTurn): string[] {
  const opening = request.temperature ? OTHERS[hashOf(`${request.temperature} ${text.slice(0, 200)}`) % OTHERS.length]! : PLAIN
  const ending = number > 1 ? [` (turn ${number})`] : []
  return text === '' ? [`Done.`, ...ending] : [opening, text, ...ending]
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}
