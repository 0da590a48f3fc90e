import type { Reply } from '@svc/testing'

export const UNICODE = 'Grüße, 👩‍👩‍👧 🏳️‍🌈 e\u0301 한국어 𝕏'

const USAGE = { input_tokens: 5, cache_creation_input_tokens: 2, cache_read_input_tokens: 3, output_tokens: 7 }
/** A whole message, as the Messages API has it; `null`: the model never said why it stopped. */
export const message = (content: readonly object[], stop_reason: string | null = 'end_turn', more: object = {}) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content,
  stop_reason,
  stop_sequence: null,
  usage: USAGE,
  ...more,
})
export const words = (text: string) => ({ type: 'text', text })
export const ctx = (id: string, input: unknown) => ({ type: 'tool_use', id, name: 'weather', input })
const HALF = JSON.stringify(message([words('Hi')])).slice(0, -30)

type Whole = (reply: Reply, body: { readonly messages: readonly unknown[] }) => unknown
const says =
  (...parts: Parameters<typeof message>): Whole =>
  reply =>
    reply.json(200, message(...parts))

/** How the models answer that answer otherwise where no stream was asked for. */
export const WHOLE: { readonly [model: string]: Whole } = {
  plain: says([words('Hello there')]),
  tools: (reply, { messages }) => {
    if (messages.length > 1) return reply.json(200, message([words('Both are sunny.')]))
    const calls = [ctx('toolu_1', { city: 'Ulm' }), ctx('toolu_2', { city: 'Bern' })]
    reply.json(200, message([words('I look.'), ...calls], 'tool_use'))
  },
  // as a server writes it that cannot parse what its model wrote
  bad: says([ctx('toolu_1', '{"city": Ulm')], 'tool_use'),
  length: says([words('one two'), ctx('toolu_1', {})], 'max_tokens'),
  async unicode(reply) {
    reply.begin({ 'content-type': 'application/json' })
    await reply.split(JSON.stringify(message([words(UNICODE)])))
    reply.end()
  },
  reasoning: says([{ type: 'thinking', thinking: 'Let me see.', signature: 'sig-1' }, words('Hi')]),
  stop: says([words('Hello')], 'stop_sequence', { stop_sequence: ' there' }),
  native: says([words('Hello'), { type: 'later_block' }], 'end_turn', { context_management: { applied_edits: [] } }),
  filtered: says([words('Hello')], 'refusal'),
  async cut(reply) {
    reply.begin({ 'content-type': 'application/json' })
    await reply.write(HALF)
    reply.cut()
  },
  'ends-early': says([words('Hi')], null),
  malformed: reply => reply.raw(200, 'application/json', HALF),
  'fail-content_refused': says([], 'refusal', { stop_details: { type: 'refusal', category: 'bio', explanation: 'Not this.' } }),
  midway: reply => reply.json(200, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
}
