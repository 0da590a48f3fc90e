import { randomUUID } from 'node:crypto'
import type { FinishReason, Json, MessagePart, ModelCallEnd, ToolCallPart, Usage } from '@svc/core/contracts'
import { thinkingBlock, writeOpaque } from './opaque.ts'
import type { Thinking } from './request.ts'

/** What an answer is written for. */
export interface AnswerFor {
  /** The model as the client named it. */
  readonly model: string
  readonly thinking: Thinking
}

export const newId = (prefix: string) => `${prefix}_${randomUUID().replaceAll('-', '')}`

const STOPS: Readonly<Record<FinishReason, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
}

/** Why an answer ended. */
export interface Stop {
  readonly stop_reason: string
  readonly stop_sequence: string | null
}

export const stopOf = (finish: FinishReason | undefined, stopText: string | undefined): Stop =>
  finish === 'stop' && stopText !== undefined
    ? { stop_reason: 'stop_sequence', stop_sequence: stopText }
    : { stop_reason: STOPS[finish ?? 'stop'], stop_sequence: null }

/** The tokens of an answer: on this wire, the input is without its cached parts. */
export function usageOf({ input, output, cached, cacheWrite, reasoning }: Usage) {
  return {
    input_tokens: Math.max(0, input - (cached ?? 0) - (cacheWrite ?? 0)),
    cache_creation_input_tokens: cacheWrite ?? null,
    cache_read_input_tokens: cached ?? null,
    output_tokens: output,
    ...(reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: reasoning } }),
  }
}

export const NO_USAGE: Usage = { input: 0, output: 0 }

/** A message without content. */
export const emptyMessage = (model: string) => ({ id: newId('msg'), type: 'message', role: 'assistant', model }) as const

/** A tool call as a block. Arguments that are not JSON stay readable: the client's check of them fails. */
export const inputOf = ({ arguments: args, invalid }: ToolCallPart) => (invalid === undefined ? args : { invalid_json: invalid })

/** The whole answer of a call that has completed. */
export function wholeMessage(end: ModelCallEnd, { model, thinking }: AnswerFor) {
  const { parts = [], providerData } = end.message ?? {}
  const { provider } = end
  const content = parts.flatMap(part => blocksOf(part, provider, thinking))
  if (providerData !== undefined && keepsData(thinking, content)) content.push(messageData(providerData, provider))
  const isRefused = parts.some(part => part.type === 'text' && part.refusal === true)
  return {
    ...emptyMessage(model),
    content,
    ...stopOf(isRefused ? 'content_filter' : end.finish, end.stopText),
    usage: usageOf(end.usage),
  }
}

/** The answer of a model that refused before it wrote anything. */
export const refusedMessage = ({ model }: AnswerFor, usage: Usage = NO_USAGE) => ({
  ...emptyMessage(model),
  content: [],
  ...stopOf('content_filter', undefined),
  usage: usageOf(usage),
})

export type Block = { readonly type: string; readonly [field: string]: unknown }

/** Data of the message goes to clients that return whole messages: those that ask for reasoning or use tools. */
const keepsData = (thinking: Thinking, content: readonly { readonly type: string }[]) =>
  thinking !== 'none' || content.some(({ type }) => type === 'tool_use')

function blocksOf(part: MessagePart, provider: string, thinking: Thinking): Block[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  if (part.type === 'reasoning') return thinking === 'none' ? [] : [thinkingBlock(part, provider, thinking === 'omitted')]
  if (part.type !== 'tool_call') return []
  const call = { type: 'tool_use', id: part.id, name: part.tool, input: inputOf(part) }
  return part.providerData === undefined ? [call] : [callData(part.id, part.providerData, provider), call]
}

/** A block with the opaque data of a tool call. */
export const callData = (id: string, data: Json, provider: string): Block => ({
  type: 'redacted_thinking',
  data: writeOpaque({ provider, calls: { [id]: data } }),
})

/** A block with the opaque data of a message. */
export const messageData = (data: Json, provider: string): Block => ({
  type: 'redacted_thinking',
  data: writeOpaque({ provider, message: data }),
})
