import type { ToolUse, TurnEvent } from '@svc/core/contracts'

/** What a turn is asked, as the HTTP API has it. */
export interface Ask {
  readonly message: string
  readonly conversation_id?: string
  readonly provider?: string
  readonly model?: string
  readonly temperature?: number
  readonly max_tokens?: number
}

/** The events of a turn, as the HTTP API has them: what both ways of chatting show and what `--json` prints. */
export type ChatEvent =
  | { readonly type: 'start'; readonly conversation_id: string; readonly provider: string; readonly model: string }
  | { readonly type: 'token'; readonly content: string; readonly index: number }
  | { readonly type: 'tool_call'; readonly tool: string; readonly call_id: string; readonly arguments: object }
  | {
      readonly type: 'tool_result'
      readonly tool: string
      readonly call_id: string
      readonly success: boolean
      readonly error: string | null
      readonly duration_ms: number
    }
  | { readonly type: 'error'; readonly error: string; readonly error_code: string; readonly details: object }
  | {
      readonly type: 'end'
      readonly status: string
      readonly conversation_id?: string
      readonly provider: string
      readonly model: string
      readonly tokens_used: { readonly input: number; readonly output: number; readonly total: number }
      readonly duration_ms: number
    }

/** Whom a chat is with: a server, or a host in this process. */
export interface Partner extends AsyncDisposable {
  readonly name: string
  /** Throws what fails before the turn has begun. */
  ask(ask: Ask, signal: AbortSignal): AsyncIterable<ChatEvent>
}

/** An event of the chat service in the words of the HTTP API. */
export function eventOf(event: TurnEvent): ChatEvent & Readonly<Record<string, unknown>> {
  switch (event.type) {
    case 'start': {
      const { type, requestId, timestamp, conversationId, provider, model } = event
      return { type, request_id: requestId, timestamp, conversation_id: conversationId, provider, model }
    }
    case 'token':
      return event
    case 'tool_call': {
      const { callId, ...rest } = event
      return { ...rest, call_id: callId }
    }
    case 'tool_result': {
      const { callId, durationMs, ...rest } = event
      return { ...rest, call_id: callId, duration_ms: durationMs }
    }
    case 'error': {
      const { code, message, details } = event.error
      return { type: 'error', error: message, error_code: code, details }
    }
    case 'end': {
      const { requestId, conversationId, usage, durationMs, toolsUsed, ...rest } = event
      const tools = toolsUsed.map(toolUse)
      return {
        ...rest,
        request_id: requestId,
        conversation_id: conversationId,
        tokens_used: usage,
        duration_ms: durationMs,
        tools_used: tools,
      }
    }
  }
}

const toolUse = ({ callId, durationMs, ...rest }: ToolUse) => ({ ...rest, call_id: callId, duration_ms: durationMs })
