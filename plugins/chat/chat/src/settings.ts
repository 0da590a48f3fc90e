import { schema } from '@svc/core'

/** The section `chat`. */
export interface ChatConfig {
  message_limit: number
  start_after_ms: number
  queue_timeout_ms: number
  timeout_ms: number
  first_token_timeout_ms: number
  token_timeout_ms: number
  whole_timeout_ms?: number
  answer_limit: number
  tools_inline: number
  tool_timeout_ms: number
  tool_result_limit: number
  tool_arguments_limit: number
  max_parallel_tools: number
  ask_timeout_ms: number
  resume_s: number
  interrupted_keep_s: number
  max_rounds: number
  history_turns: number
  titles: {
    by: 'message' | 'model'
    provider?: string
    model?: string
    profile?: string
    timeout_ms: number
  }
}

const count = (value: number, description: string, minimum = 1) => ({ type: 'integer', minimum, default: value, description })

export const CHAT_CONFIG = schema<ChatConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    message_limit: count(200_000, 'Maximum characters of a message'),
    start_after_ms: count(2_000, 'Milliseconds after which a stream sends its start event without waiting for the model', 0),
    queue_timeout_ms: count(30_000, 'Maximum milliseconds that a turn waits for earlier turns of its conversation', 0),
    timeout_ms: count(120_000, 'Time limit of a turn, in milliseconds'),
    first_token_timeout_ms: count(30_000, 'Time limit for the first event of a model, in milliseconds'),
    token_timeout_ms: count(30_000, 'Time limit between two events of a model, in milliseconds'),
    whole_timeout_ms: {
      type: 'integer',
      minimum: 1,
      description: 'Time limit for a complete model answer without a stream; default: first_token_timeout_ms',
    },
    answer_limit: count(4_000_000, 'Maximum characters of a model answer, with reasoning and tool call arguments'),
    tools_inline: count(12, 'Maximum tools whose schemas each request contains; of more tools, the model gets an index', 0),
    tool_timeout_ms: count(60_000, 'Time limit of a tool call, in milliseconds'),
    tool_result_limit: count(100_000, 'Maximum characters of a tool result that the model receives'),
    tool_arguments_limit: count(1_000_000, 'Maximum characters of the arguments of a tool call, as JSON'),
    max_parallel_tools: count(8, 'Maximum tool calls of a turn that run at the same time'),
    ask_timeout_ms: count(60_000, 'Maximum milliseconds that a tool call waits for the answer of a user'),
    resume_s: {
      type: 'integer',
      minimum: 0,
      maximum: 3_600,
      default: 30,
      description: 'Seconds for which a streamed turn continues without a reader, and can be read after its end',
    },
    interrupted_keep_s: {
      type: 'integer',
      minimum: 0,
      maximum: 31_536_000,
      default: 86_400,
      description:
        'Seconds for which a turn that waits for a person can be answered after its worker has exited; 0: it ends with its worker',
    },
    max_rounds: count(16, 'Maximum model steps of a turn'),
    history_turns: count(100, 'Maximum past turns of a conversation that the model receives', 0),
    titles: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'Titles of new conversations without a title',
      properties: {
        by: {
          enum: ['message', 'model'],
          default: 'message',
          description:
            '`message`: the first words of the first message. `model`: a model writes the title after the first turn, in a call that counts for the principal of the turn',
        },
        provider: { type: 'string', minLength: 1, description: 'Provider of that model. Default: the current selection' },
        model: { type: 'string', minLength: 1, description: 'The model. Default: the current selection' },
        profile: { type: 'string', minLength: 1, description: 'A profile, in place of `provider` and `model`' },
        timeout_ms: count(30_000, 'Time limit of the call, in milliseconds'),
      },
    },
  },
})
