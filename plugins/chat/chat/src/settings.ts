import { schema } from '@svc/core'

/** The section `chat`. */
export interface ChatConfig {
  message_limit: number
  start_after_ms: number
  queue_timeout_ms: number
  timeout_ms: number
  first_token_timeout_ms: number
  token_timeout_ms: number
  whole_timeout_ms: number
  answer_limit: number
  tool_timeout_ms: number
  tool_result_limit: number
  tool_arguments_limit: number
  max_parallel_tools: number
  ask_timeout_ms: number
  max_rounds: number
  history_turns: number
}

const count = (value: number, description: string, minimum = 1) => ({ type: 'integer', minimum, default: value, description })

export const CHAT_CONFIG = schema<ChatConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    message_limit: count(200_000, 'Characters a message may have'),
    start_after_ms: count(2_000, 'Milliseconds after which a stream says start although the model has not begun', 0),
    queue_timeout_ms: count(30_000, 'Milliseconds a turn waits for the turns before it in the same conversation', 0),
    timeout_ms: count(120_000, 'Milliseconds a turn may take'),
    first_token_timeout_ms: count(30_000, 'Milliseconds a model may take to begin its answer'),
    token_timeout_ms: count(30_000, 'Milliseconds a model may be silent within its answer'),
    whole_timeout_ms: count(60_000, 'Milliseconds a model may take for a reply without a stream; it can arrive in one piece'),
    answer_limit: count(
      4_000_000,
      'Characters one answer of a model may have, its reasoning and the arguments of its tool calls included'
    ),
    tool_timeout_ms: count(60_000, 'Milliseconds a tool may take'),
    tool_result_limit: count(100_000, 'Characters of a tool result that the model is given'),
    tool_arguments_limit: count(1_000_000, 'Characters the arguments of a tool call may have, as JSON'),
    max_parallel_tools: count(8, 'Tool calls of a turn that run at the same time'),
    ask_timeout_ms: count(60_000, 'Milliseconds a tool call that asks waits for the answer of a person'),
    max_rounds: count(16, 'Rounds of model and tools a turn may have'),
    history_turns: count(100, 'Past turns of a conversation that the model is given at most', 0),
  },
})
