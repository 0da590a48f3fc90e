import type { Received, Reply } from '@svc/testing'
import { UNICODE } from './whole.ts'
import { speak } from './wire.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- the body of a request, as far as a server looks
type Asked = any
type Item = { readonly type: string; readonly [name: string]: unknown }

const USAGE = {
  input_tokens: 12,
  input_tokens_details: { cached_tokens: 5 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 3 },
  total_tokens: 19,
}

/** An event of a stream. */
export const event = (type: string, rest: object = {}): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`

export const message = (...content: object[]): Item => ({
  type: 'message',
  id: 'msg_1',
  status: 'completed',
  role: 'assistant',
  content: content.map(part => ({ type: 'output_text', annotations: [], logprobs: [], ...part })),
})
const said = (text: string): Item => message({ text })
export const call = (id: string, name: string, args: string): Item => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: id,
  name,
  arguments: args,
  status: 'completed',
})
/** Reasoning in the form of OpenAI. Its bytes must come back. */
export const reasoning = (text: string, encrypted_content: string | null = 'gAAAAAB+/=='): Item => ({
  id: 'rs_1',
  type: 'reasoning',
  summary: text === '' ? [] : [{ type: 'summary_text', text }],
  encrypted_content,
})

/** A response at its end. */
export const response = (output: readonly Item[], rest: object = {}): object => ({
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  error: null,
  incomplete_details: null,
  output,
  usage: USAGE,
  ...rest,
})

const halves = (text: string): string[] => [text.slice(0, text.length / 2), text.slice(text.length / 2)]

/** The events of an item, in pieces. */
function itemEvents(item: Item, output_index: number): string {
  const at = { output_index, item_id: item.id }
  const begun = event('response.output_item.added', { output_index, item: { ...item, content: [], summary: [], arguments: '' } })
  const pieces = (type: string, text: string) =>
    halves(text)
      .map(delta => event(type, { ...at, content_index: 0, delta }))
      .join('')
  const summary = ((item.summary ?? []) as { text: string }[]).map(
    ({ text }, summary_index) =>
      event('response.reasoning_summary_part.added', { ...at, summary_index }) +
      pieces('response.reasoning_summary_text.delta', text)
  )
  const content = ((item.content ?? []) as { type: string; text?: string; refusal?: string; logprobs?: object[] }[]).map(part =>
    part.type === 'refusal'
      ? pieces('response.refusal.delta', part.refusal!)
      : part.logprobs!.length > 0
        ? part
            .logprobs!.map(one => event('response.output_text.delta', { ...at, delta: (one as Asked).token, logprobs: [one] }))
            .join('')
        : pieces('response.output_text.delta', part.text!)
  )
  const args = typeof item.arguments === 'string' ? pieces('response.function_call_arguments.delta', item.arguments) : ''
  return [begun, ...summary, ...content, args, event('response.output_item.done', { output_index, item })].join('')
}

const BEGUN = event('response.created', { response: {} }) + event('response.in_progress', { response: {} })

/** Answers with these items, as the request asks: as one response, or as events. */
export function answer(asked: Asked, reply: Reply, output: readonly Item[], rest: object = {}): unknown {
  const whole = response(output, rest) as { status: string }
  if (asked.stream !== true) return reply.json(200, whole)
  const items = output.map(itemEvents).join('')
  return reply.end(BEGUN + items + event(`response.${whole.status}`, { response: { ...whole, output: [] } }))
}

type Answerer = (asked: Asked, reply: Reply) => unknown

const failing =
  (status: number, code: string, text: string, headers?: Record<string, string>): Answerer =>
  (_, reply) =>
    reply.json(status, { error: { message: text, type: 'invalid_request_error', param: null, code } }, headers)

const ONCE = BEGUN + event('response.output_text.delta', { output_index: 0, delta: 'Once ' })
const HALF = JSON.stringify(response([said('Once ')])).slice(0, -30)

/** Answers with a beginning, and then this, streamed; or with the half of a whole response. */
const begun =
  (then: (reply: Reply) => unknown, whole: (reply: Reply) => unknown): Answerer =>
  async ({ stream }, reply) => {
    if (stream !== true) return whole(reply)
    await reply.write(ONCE)
    return then(reply)
  }
const cutWhole = async (reply: Reply) => {
  reply.begin({ 'content-type': 'application/json' })
  await reply.write(HALF)
  reply.cut()
}

const hasResults = ({ input }: Asked) => input.at(-1).type === 'function_call_output'
const CITIES = [call('call_1', 'weather', '{"city": "Ulm"}'), call('call_2', 'weather', '{"city": "Bern"}')]
const PIECES = [call('call_1', 'weather', '{"city": "Ülm"}'), call('call_2', 'news', '{"days": [1, 2]}')]
const OVERLOADED = { code: 'server_error', message: 'Overloaded' }

/** Answers by the name of the model. */
const ANSWERS: Readonly<Record<string, Answerer>> = {
  stop: (asked, reply) => answer(asked, reply, [said('Hello, world')]),
  plain: (asked, reply) => answer(asked, reply, [said(`Hello, world${hasResults(asked) ? '!' : ''}`)]),
  endless: (_, reply) => reply.endless(at => event('response.output_text.delta', { output_index: 0, delta: `${at} ` })),
  silent: (_, reply) => reply.silence(),
  stalled: begun(
    reply => reply.silence(),
    reply => reply.silence()
  ),
  length: (asked, reply) =>
    answer(asked, reply, [said('one two')], {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      usage: { input_tokens: 3, output_tokens: asked.max_output_tokens },
    }),
  filtered: (asked, reply) =>
    answer(asked, reply, [said('Once ')], { status: 'incomplete', incomplete_details: { reason: 'content_filter' } }),
  refusal: (asked, reply) => answer(asked, reply, [message({ type: 'refusal', refusal: 'I will not', text: undefined })]),
  unicode: async (asked, reply) => {
    if (asked.stream !== true) {
      reply.begin({ 'content-type': 'application/json' })
      await reply.split(JSON.stringify(response([said(UNICODE)])))
      return reply.end()
    }
    const pieces = Array.from(UNICODE, delta => event('response.output_text.delta', { output_index: 0, delta }))
    await reply.split(BEGUN + pieces.join(''))
    await reply.split(event('response.completed', { response: response([]) }), 7)
    return reply.end()
  },
  reasoning: (asked, reply) => answer(asked, reply, [reasoning('Let me think'), said('Done')]),
  tools: (asked, reply) => answer(asked, reply, hasResults(asked) ? [said('It is sunny')] : [reasoning(''), ...CITIES]),
  pieces(asked, reply) {
    if (asked.stream !== true) return answer(asked, reply, PIECES)
    const added = PIECES.map((item, output_index) =>
      event('response.output_item.added', { output_index, item: { ...item, arguments: '' } })
    )
    const deltas = halves(PIECES[0]!.arguments as string).flatMap((delta, half) => [
      event('response.function_call_arguments.delta', { output_index: 0, delta }),
      event('response.function_call_arguments.delta', { output_index: 1, delta: halves(PIECES[1]!.arguments as string)[half] }),
    ])
    const done = PIECES.map((item, output_index) => event('response.output_item.done', { output_index, item }))
    return reply.end([BEGUN, ...added, ...deltas, ...done, event('response.completed', { response: response([]) })].join(''))
  },
  badArguments: (asked, reply) => answer(asked, reply, [call('call_1', 'weather', '{"city": ')]),
  cut: begun(reply => reply.cut(), cutWhole),
  endsEarly: begun(
    reply => reply.end(),
    reply => reply.json(200, response([said('Once ')], { status: 'in_progress' }))
  ),
  malformed: begun(
    reply => reply.end('event: response.output_text.delta\ndata: {"type": "response.out\n\n'),
    reply => reply.raw(200, 'application/json', HALF)
  ),
  midway: begun(
    reply => reply.end(event('response.failed', { response: response([], { status: 'failed', error: OVERLOADED }) })),
    reply => reply.json(200, response([], { status: 'failed', error: OVERLOADED }))
  ),
  'midway-error': begun(
    reply => reply.end(event('error', { code: 'rate_limit_exceeded', message: 'slow down', param: null })),
    reply => reply.json(429, { error: { message: 'slow down', code: 'rate_limit_exceeded' } })
  ),
  rate_limited: failing(429, 'rate_limit_exceeded', 'slow down', { 'retry-after': '3' }),
  overloaded: failing(503, 'engine_overloaded', 'too many requests at once'),
  bad_request: failing(400, 'invalid_value', 'no such field'),
  authentication: failing(401, 'invalid_api_key', 'Incorrect API key provided'),
  context_too_long: failing(
    400,
    'context_length_exceeded',
    "This model's maximum context length is 10 tokens. However, your messages resulted in 11 tokens."
  ),
  content_refused: failing(400, 'content_filter', 'The response was filtered'),
  network: (_, reply) => reply.cut(),
  timeout: failing(504, 'gateway_timeout', 'upstream'),
  logprobs(asked, reply) {
    const tokens = ['Hel', 'lo', '!'].map(token => ({ token, logprob: -0.5, top_logprobs: [{ token, logprob: -0.5 }] }))
    return answer(asked, reply, [message({ text: 'Hello!', logprobs: tokens })])
  },
  choice: (asked, reply) => answer(asked, reply, [call('call_1', asked.tool_choice.name, '{}')]),
  data: (asked, reply) => answer(asked, reply, [said('{"a":"b"}')]),
}

/** A server that speaks the Responses API, and makes embeddings. It refuses what the real one refuses. */
export function speakResponses(received: Received, reply: Reply): unknown {
  const { path, body, headers } = received
  if (path.startsWith('/v1/models'))
    return reply.json(200, { object: 'list', data: [...Object.keys(ANSWERS), 'text-embedding-3'].map(id => ({ id })) })
  if (!path.startsWith('/v1/responses')) return speak(received, reply)
  const asked = body as Asked
  const problem = problemOf(asked)
  if (problem !== undefined) return reply.json(400, { error: { message: problem, code: 'invalid_value' } })
  const by = ANSWERS[asked.model]
  if (by) return by(asked, reply)
  const echo = `no model, and your headers were ${JSON.stringify(headers)}`
  return reply.json(404, { error: { message: echo, code: 'model_not_found' } })
}

const FIELDS = new Set(
  'model input stream store include temperature top_p max_output_tokens top_logprobs prompt_cache_key reasoning tools tool_choice parallel_tool_calls text'.split(
    ' '
  )
)

function problemOf(asked: Asked): string | undefined {
  const unknown = Object.keys(asked).find(name => !FIELDS.has(name))
  if (unknown !== undefined) return `Unknown parameter: '${unknown}'`
  const items = asked.input as Item[]
  if (items.some(({ type, role }) => type === undefined || (type === 'message') !== (role !== undefined))) return 'invalid input'
  const called = new Set(items.filter(({ type }) => type === 'function_call').map(({ call_id }) => call_id))
  const lost = items.find(({ type, call_id }) => type === 'function_call_output' && !called.has(call_id))
  return lost && `No tool call found for function call output with call_id ${String(lost.call_id)}`
}
