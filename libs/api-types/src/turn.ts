import type {
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

/** The body of a chat request. */
export interface ChatBody {
  readonly message: string
  readonly provider?: string
  readonly model?: string
  readonly temperature?: number
  readonly max_tokens?: number
  readonly conversation_id?: string
  readonly tools?: readonly string[]
  /** Only for streams: the client answers `ask` events. */
  readonly interactive?: boolean
}

/** Converts the body of a chat request to a request of the chat service. Unknown fields are dropped. */
export function turnOf(body: ChatBody): TurnRequest {
  const { message, provider, model, temperature, tools, interactive } = body
  const { conversation_id: conversationId, max_tokens: maxTokens } = body
  return {
    message,
    ...(conversationId === undefined ? {} : { conversationId }),
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(tools === undefined ? {} : { tools }),
    ...(interactive === true ? { interactive } : {}),
  }
}

/** The body of an answer to an `ask` event. */
export interface AnswerBody {
  readonly request_id: string
  readonly call_id: string
  readonly allow: boolean
  readonly reason?: string
}

export const answerOf = ({ request_id: requestId, call_id: callId, allow, reason }: AnswerBody): ToolAnswer => ({
  requestId,
  callId,
  allow,
  ...(reason === undefined ? {} : { reason }),
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
      const { type, tool, callId, arguments: given, question } = event
      return { type, tool, call_id: callId, arguments: given, question }
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
  const { requestId, timestamp, status, provider, model, usage, durationMs } = end
  const common = { type: 'end', request_id: requestId, timestamp, status, provider, model } as const
  return { ...common, tokens_used: tokensOf(usage), duration_ms: Math.round(durationMs) }
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
