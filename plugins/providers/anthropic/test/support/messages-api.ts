import { isDeepStrictEqual } from 'node:util'
import type { Json } from '@svc/core/contracts'
import { type FakeUpstream, openUpstream, type Received, type Reply } from '@svc/testing'
import { UNICODE, WHOLE } from './whole.ts'

/** The key that the fake server wants. */
export const KEY = 'sk-ant-canary-0123456789'

type Body = {
  readonly model: string
  readonly stream?: unknown
  readonly max_tokens?: unknown
  readonly messages: readonly { readonly role: string; readonly content: readonly { readonly [key: string]: unknown }[] }[]
  readonly tools?: readonly unknown[]
  readonly stop_sequences?: unknown
  readonly tool_choice?: unknown
}

/** A frame of the stream. */
export const frame = (type: string, rest: object = {}): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`
export const failure = (type: string, message: string) => ({ type: 'error', error: { type, message }, request_id: 'req_fake' })

export const started = (usage: object = {}): string =>
  frame('message_start', {
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      content: [],
      stop_reason: null,
      usage: { input_tokens: 5, cache_creation_input_tokens: 2, cache_read_input_tokens: 3, output_tokens: 1, ...usage },
    },
  }) + frame('ping')
export const ended = (stop_reason: string, delta: object = {}, usage: object = {}): string =>
  frame('message_delta', { delta: { stop_reason, stop_sequence: null, ...delta }, usage: { output_tokens: 7, ...usage } }) +
  frame('message_stop')
const delta = (index: number, piece: object): string => frame('content_block_delta', { index, delta: piece })
/** A whole block: how it begins, its pieces, its end. */
export const block = (index: number, content_block: object, ...pieces: object[]): string =>
  frame('content_block_start', { index, content_block }) +
  pieces.map(piece => delta(index, piece)).join('') +
  frame('content_block_stop', { index })
export const text = (index: number, ...pieces: string[]): string =>
  block(index, { type: 'text', text: '' }, ...pieces.map(piece => ({ type: 'text_delta', text: piece })))
export const tool = (index: number, id: string, name: string, ...json: string[]): string =>
  block(
    index,
    { type: 'tool_use', id, name, input: {} },
    ...['', ...json].map(partial_json => ({ type: 'input_json_delta', partial_json }))
  )

/** The events of an original answer, also those that svc does not read. */
export const NATIVE: readonly {
  readonly event: string
  readonly data: { readonly type: string; readonly [key: string]: Json }
}[] = [
  {
    event: 'message_start',
    data: { type: 'message_start', message: { id: 'msg_1', container: null, usage: { input_tokens: 5 } } },
  },
  { event: 'ping', data: { type: 'ping' } },
  { event: 'content_block_start', data: { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } } },
  { event: 'content_block_delta', data: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } } },
  {
    event: 'content_block_delta',
    data: { type: 'content_block_delta', index: 0, delta: { type: 'compaction_delta', content: 'x' } },
  },
  { event: 'content_block_stop', data: { type: 'content_block_stop', index: 0 } },
  { event: 'later_event', data: { type: 'later_event', huge: 1e21 } },
  {
    event: 'message_delta',
    data: {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 7 },
      context_management: { applied_edits: [] },
    },
  },
  { event: 'message_stop', data: { type: 'message_stop' } },
]
const stopOf = (body: Body) => String((body.stop_sequences as string[])[0])

/** Answers by the name of the model. */
const ANSWERS: { readonly [model: string]: (reply: Reply, body: Body) => unknown } = {
  plain: reply => reply.end(started() + text(0, 'Hello', ' there') + ended('end_turn')),
  async endless(reply) {
    await reply.write(started() + frame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }))
    await reply.endless(at => delta(0, { type: 'text_delta', text: `word ${at} ` }))
  },
  silent: reply => reply.silence(),
  tools(reply, { messages }) {
    if (messages.length > 1) return reply.end(started() + text(0, 'Both are', ' sunny.') + ended('end_turn'))
    const first = tool(1, 'toolu_1', 'weather', '{"ci', 'ty": "Ul', 'm"}')
    reply.end(started() + text(0, 'I look.') + first + tool(2, 'toolu_2', 'weather', '{"city":"Bern"}') + ended('tool_use'))
  },
  bad: reply => reply.end(started() + tool(0, 'toolu_1', 'weather', '{"city": ', 'Ulm') + ended('tool_use')),
  pieces(reply) {
    const begin = (index: number) =>
      frame('content_block_start', {
        index,
        content_block: { type: 'tool_use', id: `toolu_${index}`, name: 'weather', input: {} },
      })
    const piece = (index: number, partial_json: string) => delta(index, { type: 'input_json_delta', partial_json })
    const mixed = begin(0) + begin(1) + piece(0, '{"ci') + piece(1, '{"city"') + piece(0, 'ty":"Ulm"}') + piece(1, ':"Bern"}')
    reply.end(started() + mixed + [1, 0].map(index => frame('content_block_stop', { index })).join('') + ended('tool_use'))
  },
  reasoning: reply =>
    reply.end(
      started() +
        block(
          0,
          { type: 'thinking', thinking: '', signature: '' },
          { type: 'thinking_delta', thinking: 'Let me' },
          { type: 'thinking_delta', thinking: ' see.' },
          { type: 'signature_delta', signature: 'sig-1' }
        ) +
        text(1, 'Hi') +
        ended('end_turn')
    ),
  stop: (reply, body) => {
    const said = 'Hello there'.split(stopOf(body))[0]!
    reply.end(started() + text(0, said) + ended('stop_sequence', { stop_sequence: stopOf(body) }))
  },
  choice: (reply, { tool_choice }) =>
    reply.end(started() + tool(0, 'toolu_1', (tool_choice as { name: string }).name, '{"city":', '"Ulm"}') + ended('tool_use')),
  data: reply => reply.end(started() + text(0, '{"a":', '"b"}') + ended('end_turn')),
  native: reply => reply.end(NATIVE.map(({ event, data }) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join('')),
  filtered: reply => reply.end(started() + text(0, 'Hel', 'lo') + ended('refusal')),
  async cut(reply) {
    await reply.write(started() + text(0, 'Hi'))
    reply.cut()
  },
  'ends-early': reply => reply.end(started() + text(0, 'Hi')),
  malformed: reply => reply.end(`${started()}${text(0, 'Hi')}event: content_block_delta\ndata: {"type":"content_bl\n\n`),
  async stalled(reply) {
    await reply.write(started() + delta(0, { type: 'text_delta', text: 'Hi' }))
    await reply.silence()
  },
  length: reply => reply.end(started() + text(0, 'one two') + tool(1, 'toolu_1', 'weather', '{"ci') + ended('max_tokens')),
  async unicode(reply) {
    await reply.split(started() + text(0, ...Array.from(UNICODE)) + ended('end_turn'))
    reply.end()
  },
  'fail-rate_limited': reply => reply.json(429, failure('rate_limit_error', 'slow down'), { 'retry-after': '3' }),
  'fail-overloaded': reply => reply.json(529, failure('overloaded_error', 'Overloaded')),
  'fail-bad_request': reply => reply.json(400, failure('invalid_request_error', `messages: odd ${KEY}`)),
  'fail-authentication': reply => reply.json(401, failure('authentication_error', `invalid x-api-key ${KEY}`)),
  'fail-context_too_long': reply =>
    reply.json(400, failure('invalid_request_error', 'prompt is too long: 208310 tokens > 200000 maximum')),
  'fail-content_refused': reply =>
    reply.end(started() + ended('refusal', { stop_details: { type: 'refusal', category: 'bio', explanation: 'Not this.' } })),
  'fail-network': reply => reply.cut(),
  'fail-timeout': reply => reply.json(504, failure('timeout_error', 'too slow')),
  midway: reply =>
    reply.end(started() + text(0, 'a', ' b') + frame('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })),
}

/** A server that speaks the Messages API, and refuses what the real one refuses. */
export function openMessagesApi(answers: typeof ANSWERS = {}): Promise<FakeUpstream> {
  return openUpstream((received, reply) => {
    const fault = faultOf(received)
    if (fault) return reply.json(...fault)
    if (received.method === 'GET') return reply.json(200, { data: MODELS, has_more: false, last_id: 'plain' })
    const body = received.body as Body
    if (received.path.endsWith('/count_tokens')) return reply.json(200, { input_tokens: 4711 })
    const whole = body.stream === true ? undefined : WHOLE[body.model]
    const answer = answers[body.model] ?? whole ?? ANSWERS[body.model]
    return answer ? answer(reply, body) : reply.json(404, failure('not_found_error', `model: ${body.model}`))
  })
}

const MODELS = [{ type: 'model', id: 'plain', display_name: 'Plain', max_input_tokens: 200_000, max_tokens: 64_000 }]

function faultOf({ method, path, headers, body }: Received): [number, object] | undefined {
  const wrong = (message: string): [number, object] => [400, failure('invalid_request_error', message)]
  if (headers['x-api-key'] !== KEY) return [401, failure('authentication_error', 'invalid x-api-key')]
  if (headers['anthropic-version'] !== '2023-06-01') return wrong('anthropic-version: header is required')
  if (path.includes(KEY)) return wrong('the key is in the address')
  if (method === 'GET') return path.startsWith('/v1/models?') ? undefined : [404, failure('not_found_error', path)]
  if (path === '/v1/messages/count_tokens')
    return Object.hasOwn(body as object, 'max_tokens') ? wrong('max_tokens: Extra inputs are not permitted') : undefined
  if (path !== '/v1/messages') return [404, failure('not_found_error', path)]
  const { max_tokens, messages } = body as Body
  if (!Number.isInteger(max_tokens)) return wrong('max_tokens: Field required')
  const roles = messages.map(message => message.role)
  if (roles.some((role, at) => role !== (at % 2 === 0 ? 'user' : 'assistant'))) return wrong('messages: roles must alternate')
  const lost = messages.findIndex((message, at) => !isDeepStrictEqual(calls(message), results(messages[at + 1])))
  return lost < 0 ? undefined : wrong(`messages.${lost}: tool_use ids were found without tool_result blocks`)
}

type Message = Body['messages'][number]
const calls = ({ content }: Message) => content.filter(item => item.type === 'tool_use').map(item => item.id)
const results = (message: Message | undefined) =>
  (message?.content ?? []).filter(item => item.type === 'tool_result').map(item => item.tool_use_id)
