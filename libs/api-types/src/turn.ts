import type { JsonSchema } from '@svc/core'
import type {
  FilePart,
  ImagePart,
  ToolAnswer,
  ToolUse,
  TurnReply,
  TurnRequest,
  ErrorRecord,
  Json,
  TurnEnd,
  TurnEvent,
  TurnStatus,
  TurnUsage,
} from '@svc/core/contracts'

import { fieldInvalid } from './fields.ts'
import { BASE64, IMAGE_TYPES, isImageData } from './images.ts'

/** A file beside a message; `data` is base64. */
interface ChatPart {
  readonly type: 'image' | 'file'
  readonly media_type: string
  readonly data: string
  readonly name?: string
}

/** The body of a chat request. */
export interface ChatBody {
  readonly message: string
  readonly provider?: string
  readonly model?: string
  readonly temperature?: number
  readonly max_tokens?: number
  readonly conversation_id?: string
  readonly tools?: readonly string[]
  readonly profile?: string
  readonly mode?: string
  readonly system?: string
  readonly response_schema?: JsonSchema
  readonly parts?: readonly ChatPart[]
  readonly tool_budget?: number
  readonly token_budget?: number
  readonly cost_budget?: number
  /** Only for streams: the client answers `ask` events. */
  readonly interactive?: boolean
  /** With `interactive`: the client also answers forms. */
  readonly forms?: boolean
}

/** Converts the body of a chat request to a request of the chat service. Unknown fields are dropped. Throws INVALID_VALUE. */
export function turnOf(body: ChatBody): TurnRequest {
  const { message, provider, model, profile, mode, system, temperature, tools, parts } = body
  const given: { readonly [K in keyof TurnRequest]?: TurnRequest[K] | undefined } = {
    conversationId: body.conversation_id,
    provider,
    model,
    profile,
    mode,
    system,
    temperature,
    maxTokens: body.max_tokens,
    tools,
    toolBudget: body.tool_budget,
    tokenBudget: body.token_budget,
    costBudget: body.cost_budget,
    partial: body.token_budget !== undefined || body.cost_budget !== undefined || undefined,
    responseSchema: body.response_schema,
    parts: parts?.map(partOf),
    interactive: body.interactive || undefined,
    forms: body.forms || undefined,
  }
  const named = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { ...(named as Partial<TurnRequest>), message }
}

function partOf({ type, media_type: mimeType, data, name }: ChatPart, at: number): ImagePart | FilePart {
  const invalid = (field: string, reason: string) => fieldInvalid(`parts[${at}].${field}`, reason)
  if (!BASE64.test(data)) throw invalid('data', 'must be base64')
  if (type === 'file') return { type, data, mimeType, ...(name === undefined ? {} : { name }) }
  if (!IMAGE_TYPES.includes(mimeType)) throw invalid('media_type', `must be one of ${IMAGE_TYPES.join(', ')}`)
  if (!isImageData(mimeType, data)) throw invalid('data', `is not an image of the type ${mimeType}`)
  return { type, data, mimeType }
}

/** The body of an answer to an `ask` event. */
export interface AnswerBody {
  readonly request_id: string
  readonly call_id: string
  readonly allow: boolean
  readonly reason?: string
  readonly content?: ToolAnswer['content']
}

export const answerOf = ({ request_id: requestId, call_id: callId, allow, reason, content }: AnswerBody): ToolAnswer => ({
  requestId,
  callId,
  allow,
  ...(reason === undefined ? {} : { reason }),
  ...(content === undefined ? {} : { content }),
})

/** The body of a chat reply. */
export const replyOf = (reply: TurnReply) => ({
  success: true,
  response: reply.response,
  provider: reply.provider,
  model: reply.model,
  conversation_id: reply.conversationId,
  tokens_used: tokensOf(reply.usage),
  duration_ms: Math.round(reply.durationMs),
  tools_used: reply.toolsUsed.map(toolUseOf),
  ...stopOf(reply),
  ...(reply.data === undefined ? {} : { data: reply.data }),
})

/** What a turn cost, and the budget that stopped it. */
const stopOf = ({ cost, partial }: Pick<TurnEnd, 'cost' | 'partial'>) => ({
  ...(cost === undefined ? {} : { cost }),
  ...(partial === undefined ? {} : { partial }),
})

const toolUseOf = ({ tool, callId, arguments: given, success, durationMs, error }: ToolUse) => ({
  tool,
  call_id: callId,
  arguments: given,
  success,
  duration_ms: Math.round(durationMs),
  ...(error === undefined ? {} : { error }),
})

/** The data of the events of a chat stream. Times are ISO 8601. */
export type ChatEvent =
  | {
      readonly type: 'start'
      readonly turn_id?: string
      readonly request_id: string
      readonly timestamp: string
      readonly conversation_id: string
      readonly provider: string
      readonly model: string
    }
  | { readonly type: 'token'; readonly content: string; readonly index: number }
  | { readonly type: 'tool_call'; readonly tool: string; readonly call_id: string; readonly arguments: ToolUse['arguments'] }
  | {
      readonly type: 'ask'
      readonly tool: string
      readonly call_id: string
      readonly arguments: ToolUse['arguments']
      readonly question: string
      readonly form?: Extract<TurnEvent, { type: 'ask' }>['form']
      /** When the question expires. */
      readonly expires_at?: string
    }
  | {
      readonly type: 'tool_result'
      readonly tool: string
      readonly call_id: string
      readonly success: boolean
      readonly result: Json
      readonly error: string | null
      readonly duration_ms: number
    }
  | { readonly type: 'error'; readonly error: string; readonly error_code: string; readonly details: ErrorRecord['details'] }
  | {
      readonly type: 'end'
      readonly request_id: string
      readonly timestamp: string
      readonly status: TurnStatus
      readonly provider: string
      readonly model: string
      readonly tokens_used: TurnUsage
      readonly duration_ms: number
      /** By `models.prices`; absent if no model had a price. */
      readonly cost?: number
      /** The budget that stopped the turn: the reply is not whole. */
      readonly partial?: NonNullable<TurnEnd['partial']>
      /** The reply as data, of a turn with `response_schema`. */
      readonly data?: Json
    }

/** All events of a turn except errors, which `explain` translates, and those that only a turn with `reasoning` has. */
export type PlainEvent = Exclude<TurnEvent, { type: 'error' | 'reasoning' }>

/** Converts an event of a turn to the data of a stream event. */
export function eventOf(event: PlainEvent): ChatEvent {
  switch (event.type) {
    case 'start': {
      const { type, turnId, requestId, timestamp, conversationId, provider, model } = event
      const named = turnId === undefined ? {} : { turn_id: turnId }
      return { type, ...named, request_id: requestId, timestamp, conversation_id: conversationId, provider, model }
    }
    case 'token':
      return { type: event.type, content: event.content, index: event.index }
    case 'tool_call':
      return { type: event.type, tool: event.tool, call_id: event.callId, arguments: event.arguments }
    case 'ask': {
      const { type, tool, callId, arguments: given, question, form, until } = event
      const expires = until === undefined ? {} : { expires_at: new Date(until).toISOString() }
      return { type, tool, call_id: callId, arguments: given, question, ...(form ? { form } : {}), ...expires }
    }
    case 'tool_result': {
      const { type, tool, callId, success, result, error, durationMs } = event
      return { type, tool, call_id: callId, success, result, error, duration_ms: Math.round(durationMs) }
    }
    case 'end':
      return endEvent(event)
  }
}

/** Returns the last event of a stream. */
export function endEvent(end: Omit<TurnEnd, 'type' | 'conversationId' | 'toolsUsed'>): ChatEvent {
  const { requestId, timestamp, status, provider, model, usage, durationMs, data } = end
  const common = { type: 'end', request_id: requestId, timestamp, status, provider, model } as const
  const ended = { ...common, tokens_used: tokensOf(usage), duration_ms: Math.round(durationMs), ...stopOf(end) }
  return data === undefined ? ended : { ...ended, data }
}

/** Returns the event before an `end` with the status `failed`. */
export const errorEvent = ({ error, error_code, details }: ErrorRecord): ChatEvent => ({
  type: 'error',
  error,
  error_code,
  details,
})

/** `cached` is present only if the provider read a part of the input from its cache. */
const tokensOf = ({ input, output, total, cached }: TurnUsage): TurnUsage =>
  cached ? { input, output, total, cached } : { input, output, total }
