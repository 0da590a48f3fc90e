import type { Received, Reply } from '@svc/testing'
import { type Asked, UNICODE, USAGE, WHOLE } from './whole.ts'

/** A chunk of an answer, in OpenAI's own form. */
export const chunk = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: null }],
    ...more,
  })}\n\n`
export const says = (content: string) => chunk({ content })
export const finish = (reason: string) => chunk({}, { choices: [{ index: 0, delta: {}, finish_reason: reason }] })
export const usage = (value: object = USAGE) => chunk({}, { choices: [], usage: value })
export const DONE = 'data: [DONE]\n\n'
/** One piece of a tool call. */
export const call = (index: number | undefined, piece: { id?: string; name?: string; arguments?: unknown }) => {
  const { id, ...wanted } = piece
  return chunk({ tool_calls: [{ index, ...(id ? { id, type: 'function' } : {}), function: wanted }] })
}

const failing = (status: number, code: string, message: string, headers?: Record<string, string>) => (_: Asked, reply: Reply) =>
  reply.json(status, { error: { message, type: 'invalid_request_error', param: null, code } }, headers)
const begun = (then: (reply: Reply) => unknown) => async (_: Asked, reply: Reply) => {
  await reply.write(chunk({ role: 'assistant', content: '' }) + says('Once '))
  await then(reply)
}
const end = (reason: string) => finish(reason) + usage() + DONE

/** A piece of one of several answers. */
export const ofChoice = (index: number, delta: object, finish_reason: string | null = null) =>
  chunk({}, { choices: [{ index, delta, finish_reason }] })
const token = (text: string) => ({
  token: text,
  logprob: -0.5,
  bytes: [...Buffer.from(text)],
  top_logprobs: [
    { token: text, logprob: -0.5, bytes: null },
    { token: 'x', logprob: -3 },
  ],
})
export const logprobs = (...texts: string[]) =>
  chunk(
    {},
    { choices: [{ index: 0, delta: { content: texts.join('') }, logprobs: { content: texts.map(token) }, finish_reason: null }] }
  )

/** The stream of an original request: chunks with fields that no other server has. */
export const NATIVE = [
  chunk({ role: 'assistant', content: '', audio: null }, { system_fingerprint: 'fp_1', obfuscation: 'a1' }),
  chunk({ content: 'Hello, world' }, { service_tier: 'flex' }),
  finish('stop'),
  usage(),
]

/** What a server does with a request, by the name of its model: it answers well, or with one of the faults. */
const ANSWERS: Readonly<Record<string, (asked: Asked, reply: Reply) => unknown>> = {
  plain: async (asked, reply) => {
    await reply.write(chunk({ role: 'assistant', content: '' }))
    await reply.write(says('Hello, ') + says('world'))
    if (asked.messages.at(-1)?.role === 'tool') await reply.write(says('!'))
    reply.end(end('stop'))
  },
  endless: (_, reply) => reply.endless(at => says(`${at} `)),
  silent: (_, reply) => reply.silence(),
  stalled: begun(reply => reply.silence()),
  length: (asked, reply) => {
    const most = asked.max_completion_tokens ?? asked.max_tokens ?? 0
    reply.end(says('one ') + says('two') + finish('length') + usage({ prompt_tokens: 3, completion_tokens: most }) + DONE)
  },
  unicode: async (_, reply) => {
    await reply.split(Array.from(UNICODE, says).join('').replaceAll('\n', '\r\n'))
    await reply.split(end('stop'), 7)
    reply.end()
  },
  reasoning: (_, reply) =>
    reply.end(chunk({ reasoning_content: 'Let me ' }) + chunk({ reasoning: 'think' }) + says('Done') + end('stop')),
  filtered: begun(reply => reply.end(end('content_filter'))),
  tools: (asked, reply) => {
    if (asked.messages.at(-1)?.role === 'tool') return reply.end(says('It is ') + says('sunny') + end('stop'))
    reply.end(
      call(0, { id: 'call_1', name: 'weather', arguments: '{"city": "Ulm"}' }) +
        call(1, { id: 'call_2', name: 'weather', arguments: '{"city": "Bern"}' }) +
        end('tool_calls')
    )
  },
  pieces: async (_, reply) => {
    await reply.write(chunk({ role: 'assistant', content: null }) + call(0, { id: 'call_1', name: 'weather', arguments: '' }))
    await reply.write(call(1, { id: 'call_2', name: 'news', arguments: '' }) + call(0, { arguments: '{"ci' }))
    await reply.write(call(1, { arguments: '{"days"' }) + call(0, { arguments: 'ty": "Ü' }) + call(1, { arguments: ': [1,' }))
    reply.end(call(0, { arguments: 'lm"}' }) + call(1, { arguments: ' 2]}' }) + end('tool_calls'))
  },
  badArguments: (_, reply) => reply.end(call(0, { id: 'call_1', name: 'weather', arguments: '{"city": ' }) + end('tool_calls')),
  cut: begun(reply => reply.cut()),
  endsEarly: begun(reply => reply.end()),
  malformed: begun(reply => reply.end(`data: {"choices": [{"delta": {"content": "x\n\n${DONE}`)),
  midway: begun(reply => reply.end(`data: ${JSON.stringify({ error: { message: 'Overloaded', type: 'server_error' } })}\n\n`)),
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
  stop: ({ stop }, reply) => {
    const said = 'Hello, world'.split(String((stop as string[])[0]))[0]!
    const choice = { index: 0, delta: {}, finish_reason: 'stop', stop_reason: (stop as string[])[0] }
    reply.end(says(said) + chunk({}, { choices: [choice] }) + usage() + DONE)
  },
  choices: ({ n }, reply) =>
    reply.end(
      Array.from({ length: Number(n) }, (_, at) => ofChoice(at, { role: 'assistant', content: `Hello ` })).join('') +
        Array.from({ length: Number(n) }, (_, at) => ofChoice(at, { content: `${at}` })).join('') +
        Array.from({ length: Number(n) }, (_, at) => ofChoice(at, {}, 'stop')).join('') +
        usage() +
        DONE
    ),
  logprobs: (_, reply) => reply.end(logprobs('Hel', 'lo') + says('') + logprobs('!') + end('stop')),
  choice: ({ tool_choice }, reply) => {
    const { name } = (tool_choice as { function: { name: string } }).function
    reply.end(call(0, { id: 'call_1', name, arguments: '{}' }) + end('tool_calls'))
  },
  data: (_, reply) => reply.end(says('{"a":') + says('"b"}') + end('stop')),
  native: (_, reply) => reply.end(NATIVE.join('') + DONE),
  network: (_, reply) => reply.cut(),
  timeout: failing(504, 'gateway_timeout', 'upstream'),
}

interface AskedVectors {
  readonly input: readonly (string | number[])[]
  readonly dimensions?: number
  readonly output_dimension?: number
  readonly encoding_format?: string
}

/** Vectors of a text: its length and its characters. The server sends them in any order. */
function embed({ input, dimensions, output_dimension = dimensions ?? 4, encoding_format }: AskedVectors, reply: Reply): unknown {
  const vectors = input.map(text => Array.from({ length: output_dimension }, (_, at) => (at === 0 ? text.length : at / 8)))
  const shown = (vector: number[]) =>
    encoding_format === 'base64' ? Buffer.from(new Float32Array(vector).buffer).toString('base64') : vector
  const data = vectors.map((vector, index) => ({ object: 'embedding', index, embedding: shown(vector) })).toReversed()
  return reply.json(200, { object: 'list', data, usage: { prompt_tokens: 9, total_tokens: 9 } })
}

/** A server that speaks chat completions. */
export function speak({ path, body, headers }: Received, reply: Reply): unknown {
  if (path.startsWith('/v1/models'))
    return reply.json(200, {
      object: 'list',
      data: [...Object.keys(ANSWERS), 'text-embedding-3'].map(id => ({ id, object: 'model' })),
    })
  if (path.startsWith('/v1/embeddings')) return embed(body as AskedVectors, reply)
  if (!path.startsWith('/v1/chat/completions')) return reply.json(404, { error: { message: `no ${path}` } })
  const asked = body as Asked
  const answer = ANSWERS[asked.model]
  // An echo of all there is: what a canary must not find in any word of ours.
  if (!answer)
    return reply.json(404, {
      error: { message: `no model, and your headers were ${JSON.stringify(headers)}`, code: 'model_not_found' },
    })
  const whole = asked.stream === true ? undefined : WHOLE[asked.model]
  return whole ? whole(reply, asked) : answer(asked, reply)
}
