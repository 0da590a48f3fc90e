import { event, halves, type Refusal, type Wire } from './wire.ts'

const reported = (type: string, more: object) => event({ type, ...more }, type)
const refuse = (status: number, type: string, message: string, headers?: Record<string, string>): Refusal => ({
  status,
  body: { type: 'error', error: { type, message } },
  ...(headers ? { headers } : {}),
})
/** What is no JSON stands there as it was written. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}
const STOP = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' }

/** `POST /messages` */
export const MESSAGES: Wire = {
  path: '/messages',
  whole: ({ text, thoughts, calls = [], end, usage }) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [
      ...(thoughts === undefined ? [] : [{ type: 'thinking', thinking: thoughts, signature: 'sig-1' }]),
      ...(text === undefined ? [] : [{ type: 'text', text }]),
      ...calls.map(({ id, name, json }) => ({ type: 'tool_use', id, name, input: parsed(json) })),
    ],
    stop_reason: end === null ? null : STOP[end],
    stop_sequence: null,
    usage: {
      input_tokens: usage.input - usage.cached,
      cache_read_input_tokens: usage.cached,
      cache_creation_input_tokens: 0,
      output_tokens: usage.output,
    },
  }),
  usage: { input: 5, output: 2, cached: 2 },
  begin: () =>
    reported('message_start', {
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 3, cache_read_input_tokens: 2, cache_creation_input_tokens: 0, output_tokens: 1 },
      },
    }) + reported('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  thoughts: pieces =>
    [
      reported('content_block_start', { index: 9, content_block: { type: 'thinking', thinking: '', signature: '' } }),
      ...pieces.map(thinking => reported('content_block_delta', { index: 9, delta: { type: 'thinking_delta', thinking } })),
      reported('content_block_delta', { index: 9, delta: { type: 'signature_delta', signature: 'sig-1' } }),
      reported('content_block_stop', { index: 9 }),
    ].join(''),
  text: text => reported('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
  calls: calls =>
    reported('content_block_stop', { index: 0 }) +
    calls
      .flatMap(({ id, name, json }, at) => [
        reported('content_block_start', { index: at + 1, content_block: { type: 'tool_use', id, name, input: {} } }),
        ...halves(json).map(partial_json =>
          reported('content_block_delta', { index: at + 1, delta: { type: 'input_json_delta', partial_json } })
        ),
        reported('content_block_stop', { index: at + 1 }),
      ])
      .join(''),
  end: (end, { output }) =>
    reported('content_block_stop', { index: 0 }) +
    reported('message_delta', { delta: { stop_reason: STOP[end], stop_sequence: null }, usage: { output_tokens: output } }) +
    reported('message_stop', {}),
  error: message => reported('error', { error: { type: 'overloaded_error', message } }),
  refusals: echo => ({
    rate_limited: refuse(429, 'rate_limit_error', 'Number of requests has exceeded your limit', { 'retry-after': '2' }),
    overloaded: refuse(529, 'overloaded_error', 'Overloaded'),
    bad_request: refuse(400, 'invalid_request_error', 'messages: at least one message is required'),
    authentication: refuse(401, 'authentication_error', `invalid x-api-key ${echo}`),
    context_too_long: refuse(400, 'invalid_request_error', 'prompt is too long: 9000 tokens > 8192 maximum'),
    timeout: refuse(504, 'timeout_error', 'Request timed out'),
  }),
}
