import type { ToolUse, TurnReply, TurnRequest } from '@svc/core/contracts'
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
}

/** What a chat request asks of the chat service; fields that the API does not know are left out. */
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
