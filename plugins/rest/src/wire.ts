import type {
  ChatMessage,
  Conversation,
  ConversationSummary,
  Effective,
  ErrorRecord,
  Profile,
  ToolUse,
  TurnEnd,
  TurnEvent,
  TurnReply,
  TurnRequest,
} from '@svc/core/contracts'

// The one place where names change: camelCase within, snake_case on the wire.

/** The body of a chat request, as its schema lets it through. */
export interface ChatBody {
  readonly message: string
  readonly provider?: string
  readonly model?: string
  readonly temperature?: number
  readonly max_tokens?: number
  readonly conversation_id?: string
  readonly tools?: readonly string[]
}

export function turnOf(body: ChatBody): TurnRequest {
  const { message, provider, model, temperature, tools, conversation_id: conversationId, max_tokens: maxTokens } = body
  return {
    message,
    ...(conversationId === undefined ? {} : { conversationId }),
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(tools === undefined ? {} : { tools }),
  }
}

export const replyWire = (reply: TurnReply) => ({
  success: true,
  response: reply.response,
  provider: reply.provider,
  model: reply.model,
  conversation_id: reply.conversationId,
  tokens_used: { input: reply.usage.input, output: reply.usage.output, total: reply.usage.total },
  duration_ms: Math.round(reply.durationMs),
  tools_used: reply.toolsUsed.map(toolUseWire),
})

const toolUseWire = ({ tool, callId, arguments: given, success, durationMs, error }: ToolUse) => ({
  tool,
  call_id: callId,
  arguments: given,
  success,
  duration_ms: Math.round(durationMs),
  ...(error === undefined ? {} : { error }),
})

/** Events whose data is the same whatever the request: all but errors, which the API must explain first. */
type PlainEvent = Exclude<TurnEvent, { type: 'error' | 'token' }>

const EVENTS: { readonly [K in PlainEvent['type']]: (event: Extract<PlainEvent, { type: K }>) => object } = {
  start: event => ({
    type: 'start',
    request_id: event.requestId,
    timestamp: event.timestamp,
    conversation_id: event.conversationId,
    provider: event.provider,
    model: event.model,
  }),
  tool_call: event => ({ type: 'tool_call', tool: event.tool, call_id: event.callId, arguments: event.arguments }),
  tool_result: event => ({
    type: 'tool_result',
    tool: event.tool,
    call_id: event.callId,
    success: event.success,
    result: event.result,
    error: event.error,
    duration_ms: Math.round(event.durationMs),
  }),
  end: event => endWire(event),
}

export const endWire = (
  end: Pick<TurnEnd, 'requestId' | 'timestamp' | 'status' | 'provider' | 'model' | 'usage' | 'durationMs'>
) => ({
  type: 'end',
  request_id: end.requestId,
  timestamp: end.timestamp,
  status: end.status,
  provider: end.provider,
  model: end.model,
  tokens_used: { input: end.usage.input, output: end.usage.output, total: end.usage.total },
  duration_ms: Math.round(end.durationMs),
})

export function eventWire<E extends PlainEvent>(event: E): object {
  const wire = EVENTS[event.type] as (event: E) => object
  return wire(event)
}

export const errorWire = ({ error, error_code, details }: ErrorRecord) => ({ type: 'error', error, error_code, details })

export const summaryWire = (one: ConversationSummary) => ({
  conversation_id: one.id,
  created_at: one.createdAt,
  updated_at: one.updatedAt,
  message_count: one.messageCount,
})

export const conversationWire = (one: Conversation) => ({ ...summaryWire(one), messages: one.messages.map(messageWire) })

export const messageWire = ({ role, content, status }: ChatMessage) => ({
  role,
  content,
  ...(status === undefined ? {} : { status }),
})

export const effectiveWire = (effective: Effective) => ({
  profile: effective.profile,
  provider: effective.provider,
  model: effective.model,
  mode: effective.mode,
  override: effective.override && { provider: effective.override.provider, model: effective.override.model },
  profiles: effective.profiles,
  modes: effective.modes,
  source: { provider: effective.source.provider, model: effective.source.model },
})

export const profileWire = (profile: Profile, active: string, standard: string) => ({
  name: profile.name,
  provider: profile.provider ?? null,
  model: profile.model ?? null,
  description: profile.description ?? null,
  temperature: profile.temperature ?? null,
  max_tokens: profile.maxTokens ?? null,
  is_default: profile.name === standard,
  active: profile.name === active,
})
