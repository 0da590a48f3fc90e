import type { ToolAnswer, ToolUse, TurnReply, TurnRequest } from '@svc/core/contracts'
import { tokensOf } from './events.ts'

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
