import type { JsonSchema } from '@svc/core'
import type { RouteResponse } from '@svc/core/contracts'

// Descriptions for the OpenAPI document. `translate` checks bodies, because it knows which server gets them.

const described = (description: string): JsonSchema => ({ description })

const COUNTED = {
  model: described('<provider>/<model>, an alias, an id that one provider has, or profile:, team: or workflow: with a name'),
  messages: described('The conversation: messages of the user, the assistant, and the system'),
  system: described('The system prompt: a string, or text blocks'),
  tools: described('Tools of the client'),
  tool_choice: described('auto, any, tool or none, with disable_parallel_tool_use'),
  thinking: described('enabled, adaptive or disabled'),
} as const

const FIELDS = {
  ...COUNTED,
  max_tokens: described('Maximum number of output tokens'),
  stream: described('Whether the answer is a stream of events'),
  stop_sequences: described('Texts before which the answer ends'),
  temperature: described('0 to 1'),
  top_p: described('Above 0, up to 1'),
  top_k: described('An integer'),
  output_config: described('effort, and format: a JSON Schema of the answer'),
  metadata: described('user_id: a key for the prompt cache'),
} as const

const object = (title: string, properties: Readonly<Record<string, JsonSchema>>, required: readonly string[]): JsonSchema => ({
  ...(title === '' ? {} : { title }),
  type: 'object',
  properties,
  required,
})

export const MESSAGE_BODY = object('', FIELDS, ['model', 'messages'])
export const COUNT_BODY = object('', COUNTED, ['model', 'messages'])

const STRING: JsonSchema = { type: 'string' }

const error = object(
  'MessagesApiError',
  {
    type: { const: 'error' },
    error: object('', { type: STRING, message: STRING }, ['type', 'message']),
    request_id: STRING,
  },
  ['type', 'error', 'request_id']
)

const message = object(
  'MessagesApiMessage',
  {
    id: STRING,
    type: { const: 'message' },
    role: { const: 'assistant' },
    model: STRING,
    content: { type: 'array', items: object('', { type: STRING }, ['type']) },
    stop_reason: { type: ['string', 'null'] },
    stop_sequence: { type: ['string', 'null'] },
    usage: object('', { input_tokens: { type: 'integer' }, output_tokens: { type: 'integer' } }, [
      'input_tokens',
      'output_tokens',
    ]),
  },
  ['id', 'type', 'role', 'model', 'content', 'stop_reason', 'usage']
)

const count = object('MessagesApiCount', { input_tokens: { type: 'integer' } }, ['input_tokens'])

/** The errors of both routes by their status. */
const ERRORS: Readonly<Record<string, RouteResponse>> = Object.fromEntries(
  Object.entries({
    400: 'invalid_request_error',
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
    415: 'invalid_request_error',
    429: 'rate_limit_error',
    500: 'api_error',
    503: 'overloaded_error',
    504: 'timeout_error',
    529: 'overloaded_error',
  }).map(([status, description]) => [status, { description, schema: error }])
)

export const MESSAGE_RESPONSES: Readonly<Record<string, RouteResponse>> = {
  '200': { description: 'The message. With stream, its events: text/event-stream.', schema: message },
  ...ERRORS,
}
export const COUNT_RESPONSES: Readonly<Record<string, RouteResponse>> = {
  '200': { description: 'The number of tokens.', schema: count },
  ...ERRORS,
}
