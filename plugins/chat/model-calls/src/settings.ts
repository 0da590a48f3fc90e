import { schema } from '@svc/core'

/** The section `models.calls`: limits of calls whose caller sets none. */
export interface CallsConfig {
  timeout_ms: number
  first_token_timeout_ms: number
  token_timeout_ms: number
  answer_limit: number
  tool_arguments_limit: number
}

const count = (value: number, description: string) => ({ type: 'integer', minimum: 1, default: value, description })

export const CALLS_CONFIG = schema<CallsConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    timeout_ms: count(1_800_000, 'Time limit of a model call with its retries, in milliseconds'),
    first_token_timeout_ms: count(600_000, 'Time limit for the first event of a model, in milliseconds'),
    token_timeout_ms: count(120_000, 'Time limit between two events of a model, in milliseconds'),
    answer_limit: count(4_000_000, 'Maximum characters of a model answer, with reasoning and tool call arguments'),
    tool_arguments_limit: count(1_000_000, 'Maximum characters of the arguments of a tool call, as JSON'),
  },
})
