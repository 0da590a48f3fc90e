import type { JsonSchema } from '@svc/core'
import type { Json, ModelRequest, ReasoningEffort } from '@svc/core/contracts'
import type { LocalTurn, RequestedTool } from './directives.ts'
import { noSample } from './errors.ts'
import { fits, sampleOf } from './sample.ts'
import { wordsOf } from './tokens.ts'

/** The next step of the model: tool calls, or a text in parts. */
export type Reply = { readonly calls: readonly RequestedTool[] } | { readonly say: readonly string[] }

/** True if the reply only restates the message. Nearly all replies of a load test do. */
export const isPlain = ({ toolChoice, responseSchema, responseFormat }: ModelRequest, { tools, results }: LocalTurn) =>
  tools.length === 0 &&
  results.length === 0 &&
  responseSchema === undefined &&
  responseFormat === undefined &&
  (toolChoice === undefined || toolChoice === 'auto' || toolChoice === 'none')

export const plainReply = (request: ModelRequest, turn: LocalTurn, choice: number): Extract<Reply, { say: unknown }> => ({
  say: restated(request, turn, choice),
})

type Offered = (name: string) => boolean

/** Decides the reply. The same request always gets the same reply. Throws MODEL_FAILED if it finds no value for a schema. */
export async function replyTo(request: ModelRequest, turn: LocalTurn, choice: number): Promise<Reply> {
  const offered: Offered = name =>
    request.toolChoice !== 'none' &&
    ((request.tools ?? []).some(tool => tool.name === name) || request.indexed?.includes(name) === true)
  const calls = await callsOf(request, turn, offered)
  if (calls.length > 0) return { calls }
  if (request.responseSchema !== undefined) return { say: [JSON.stringify(await valueOf(request.responseSchema, turn.text))] }
  const texts = [...toolLines(turn, offered), ...restated(request, turn, choice)]
  return { say: request.responseFormat === 'json' ? [JSON.stringify({ reply: texts.join('') })] : texts }
}

/** The calls that the message requests, else those that `toolChoice` forces. */
async function callsOf(request: ModelRequest, turn: LocalTurn, offered: Offered): Promise<readonly RequestedTool[]> {
  const { toolChoice, tools = [], parallelToolCalls } = request
  const named = typeof toolChoice === 'object' ? toolChoice.tool : undefined
  const open = (call: RequestedTool) => offered(call.tool) && (named === undefined || call.tool === named)
  const wanted = turn.tools.length === 0 ? [] : turn.tools.filter(open)
  // One call at a time: each result leads to the next call.
  const left = parallelToolCalls === false ? wanted.slice(turn.results.length) : turn.results.length === 0 ? wanted : []
  const calls = parallelToolCalls === false ? left.slice(0, 1) : left
  if (calls.length > 0) return strictly(request, turn, calls)
  const forced = tools.find(tool => tool.name === (named ?? (toolChoice === 'required' ? tools[0]?.name : undefined)))
  return forced ? [{ tool: forced.name, arguments: objectOf(await valueOf(forced.parameters, turn.text)) }] : []
}

/** Replaces arguments that a strict tool does not accept. */
async function strictly({ tools = [] }: ModelRequest, { text }: LocalTurn, calls: readonly RequestedTool[]) {
  const strict = tools.filter(tool => tool.strict === true)
  if (strict.length === 0) return calls
  return Promise.all(
    calls.map(async (call): Promise<RequestedTool> => {
      const schema = strict.find(tool => tool.name === call.tool)?.parameters
      if (schema === undefined || (await fits(schema, call.arguments))) return call
      return { tool: call.tool, arguments: objectOf(await valueOf(schema, text)) }
    })
  )
}

async function valueOf(schema: JsonSchema, text: string): Promise<Json> {
  const value = await sampleOf(schema, text)
  if (value === undefined) throw noSample()
  return value
}

const objectOf = (value: Json): RequestedTool['arguments'] => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw noSample()
  return value as RequestedTool['arguments']
}

/** A line for each tool: its answer, or that the request did not offer it. */
function toolLines(turn: LocalTurn, offered: Offered): string[] {
  const answers = turn.results.map(
    ({ tool, isError, content }) => `${tool} ${isError ? 'failed' : 'answered'}: ${wordsOf(content)}\n`
  )
  const missing = turn.tools.filter(call => !offered(call.tool)).map(call => `I was not offered the tool ${call.tool}.\n`)
  return [...answers, ...missing]
}

const PLAIN = 'You said: '
const OTHERS = ['I heard: ', 'Your message was: ', 'You wrote: ', 'As I understand it: '] as const

/**
 * Repeats the message. Its attachments follow, and from the second turn on, the turn's number. With sampling, text and sampling
 * settings select the phrasing.
 */
function restated(request: ModelRequest, { text, number, attachments }: LocalTurn, choice: number): string[] {
  const ending = number > 1 ? [` (turn ${number})`] : []
  const attached = attachments.map(item => ` [${item}]`)
  return text === '' && attached.length === 0
    ? [`Done.`, ...ending]
    : [phrasing(request, text, choice), text, ...attached, ...ending]
}

function phrasing(request: ModelRequest, text: string, choice: number): string {
  const { temperature, seed, topP = 1, topK = OTHERS.length } = request
  const samples =
    temperature === undefined ? seed !== undefined || request.topP !== undefined || request.topK !== undefined : temperature > 0
  if (!samples && choice === 0) return PLAIN
  // Fewer phrasings are likely enough for a low top_p or top_k.
  const count = Math.max(1, Math.min(topK, Math.ceil(topP * OTHERS.length), OTHERS.length))
  const source = `${temperature ?? ''} ${text.slice(0, 200)}${seed === undefined ? '' : ` ${seed}`}`
  return OTHERS[(hashOf(source) + choice) % count]!
}

const THOUGHTS: Readonly<Record<ReasoningEffort, number>> = { none: 0, minimal: 1, low: 2, medium: 3, high: 4, xhigh: 5, max: 6 }

/** The reasoning before the reply: the more effort, the more sentences. */
export function thoughtsOf({ reasoningEffort, reasoningTokens }: ModelRequest, { text }: LocalTurn): string {
  if (reasoningEffort === undefined && reasoningTokens === undefined) return ''
  const count = THOUGHTS[reasoningEffort ?? 'medium'] ?? THOUGHTS.medium
  const about = text.slice(0, 40).toWellFormed()
  return Array.from({ length: count }, (_, at) => `Thought ${at + 1} of ${count}: the message is "${about}".\n`).join('')
}

/** FNV-1a hash. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}
