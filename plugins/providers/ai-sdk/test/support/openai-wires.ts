import { event, halves, probable, type Refusal, type Wire, type WireCall, type WireUsage } from './wire.ts'

const refuse = (status: number, code: string, message: string, headers?: Record<string, string>): Refusal => ({
  status,
  body: { error: { message, type: 'invalid_request_error', param: null, code } },
  ...(headers ? { headers } : {}),
})

const refusals: Wire['refusals'] = echo => ({
  rate_limited: refuse(429, 'rate_limit_exceeded', 'Rate limit reached', { 'retry-after': '2' }),
  overloaded: refuse(503, 'server_error', 'The engine is overloaded'),
  bad_request: refuse(400, 'invalid_value', 'Unsupported value'),
  authentication: refuse(401, 'invalid_api_key', `Incorrect API key provided: ${echo}`),
  context_too_long: refuse(
    400,
    'context_length_exceeded',
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
  ),
  content_refused: refuse(400, 'content_filter', 'The prompt was filtered'),
  timeout: refuse(504, 'gateway', 'Gateway Time-out'),
})

const chunk = (delta: object, finish: string | null = null, more: object = {}) =>
  event({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish, ...more }],
  })
const piece = (index: number, json: string) => chunk({ tool_calls: [{ index, function: { arguments: json } }] })

const chatUsage = ({ input, output, cached, reasoning }: WireUsage) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: { cached_tokens: cached },
  completion_tokens_details: { reasoning_tokens: reasoning },
})

/** `POST /chat/completions` */
export const CHAT: Wire = {
  whole({ text = null, calls = [], end, usage, top }) {
    const tool_calls = calls.map(({ id, name, json }) => ({ id, type: 'function', function: { name, arguments: json } }))
    const message = { role: 'assistant', content: text, ...(calls.length === 0 ? {} : { tool_calls }) }
    const logprobs = top === undefined ? {} : { logprobs: { content: [probable(text ?? '', top)] } }
    const choices = [{ index: 0, message, finish_reason: end, ...logprobs }]
    return { id: 'c1', object: 'chat.completion', created: 1, model: 'm', choices, usage: chatUsage(usage) }
  },
  path: '/chat/completions',
  usage: { input: 5, output: 2, cached: 2, reasoning: 1 },
  begin: () => chunk({ role: 'assistant', content: '' }),
  text: (content, top) => chunk({ content }, null, top === undefined ? {} : { logprobs: { content: [probable(content, top)] } }),
  calls: calls =>
    [
      ...calls.map(({ id, name }, index) =>
        chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] })
      ),
      ...calls.map(({ json }, index) => piece(index, halves(json)[0])),
      // the later one is whole first
      ...calls.map(({ json }, index) => piece(index, halves(json)[1])).reverse(),
    ].join(''),
  end: (end, usage) =>
    [
      chunk({}, end),
      event({
        id: 'c1',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [],
        usage: chatUsage(usage),
      }),
      'data: [DONE]\n\n',
    ].join(''),
  error: message => event({ error: { message, type: 'server_error', param: null, code: null } }),
  refusals,
}

const reported = (type: string, more: object) => event({ type, sequence_number: 1, ...more }, type)
const MESSAGE = { type: 'message', id: 'msg_1', status: 'in_progress', role: 'assistant', content: [] }
const call = ({ id, name }: WireCall, json: string) => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: id,
  name,
  arguments: json,
  status: 'completed',
})

const INCOMPLETE: { readonly [end: string]: string | undefined } = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}
const THOUGHT = { type: 'reasoning', id: 'rs_1', summary: [] }

const responsesUsage = ({ input, output, cached, reasoning }: WireUsage) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning },
})

/** `POST /responses` */
export const RESPONSES: Wire = {
  whole({ text, thoughts, calls = [], end, usage, top }) {
    const reason = INCOMPLETE[end ?? '']
    const summary = [{ type: 'summary_text', text: thoughts }]
    const logprobs = top === undefined ? {} : { logprobs: [probable(text ?? '', top)] }
    const content = [{ type: 'output_text', text, annotations: [], ...logprobs }]
    const output = [
      ...(thoughts === undefined ? [] : [{ ...THOUGHT, summary }]),
      ...(text === undefined ? [] : [{ ...MESSAGE, status: 'completed', content }]),
      ...calls.map(item => call(item, item.json)),
    ]
    return {
      id: 'resp_1',
      created_at: 1,
      model: 'm',
      ...(end === null ? { output: null } : { output }),
      incomplete_details: reason === undefined ? null : { reason },
      usage: responsesUsage(usage),
    }
  },
  path: '/responses',
  usage: { input: 5, output: 2, cached: 2, reasoning: 1 },
  begin: () =>
    reported('response.created', { response: { id: 'resp_1', created_at: 1, model: 'm' } }) +
    reported('response.output_item.added', { output_index: 0, item: MESSAGE }),
  thoughts: pieces =>
    [
      reported('response.output_item.added', { output_index: 9, item: THOUGHT }),
      reported('response.reasoning_summary_part.added', { item_id: 'rs_1', output_index: 9, summary_index: 0 }),
      ...pieces.map(delta =>
        reported('response.reasoning_summary_text.delta', { item_id: 'rs_1', output_index: 9, summary_index: 0, delta })
      ),
      reported('response.reasoning_summary_part.done', { item_id: 'rs_1', output_index: 9, summary_index: 0 }),
      reported('response.output_item.done', { output_index: 9, item: THOUGHT }),
    ].join(''),
  text(delta, top) {
    const logprobs = top === undefined ? {} : { logprobs: [probable(delta, top)] }
    return reported('response.output_text.delta', { item_id: 'msg_1', output_index: 0, content_index: 0, delta, ...logprobs })
  },
  calls: calls =>
    [
      ...calls.map((item, at) => reported('response.output_item.added', { output_index: at + 1, item: call(item, '') })),
      ...calls.flatMap((item, at) =>
        halves(item.json).map(delta =>
          reported('response.function_call_arguments.delta', { item_id: `fc_${item.id}`, output_index: at + 1, delta })
        )
      ),
      ...calls
        .map((item, at) => reported('response.output_item.done', { output_index: at + 1, item: call(item, item.json) }))
        .reverse(),
    ].join(''),
  end(end, usage) {
    const reason = INCOMPLETE[end]
    const type = reason === undefined ? 'response.completed' : 'response.incomplete'
    const details = reason === undefined ? null : { reason }
    return (
      reported('response.output_item.done', { output_index: 0, item: { ...MESSAGE, status: 'completed' } }) +
      reported(type, { response: { id: 'resp_1', incomplete_details: details, usage: responsesUsage(usage) } })
    )
  },
  error: message => reported('error', { error: { type: 'server_error', code: 'server_error', message, param: null } }),
  refusals,
}
