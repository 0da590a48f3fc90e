import type { Reply } from '@svc/testing'

/** The body of a request, as far as a server looks. */
export interface Asked {
  readonly model: string
  readonly messages: readonly { readonly role: string; readonly content: unknown; readonly [name: string]: unknown }[]
  readonly max_tokens?: number
  readonly max_completion_tokens?: number
  readonly [name: string]: unknown
}

export const UNICODE = 'Grüße, 👩‍👩‍👧 🏳️‍🌈 e\u0301 한국어 𝕏'
export const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 7,
  total_tokens: 19,
  prompt_tokens_details: { cached_tokens: 5 },
  completion_tokens_details: { reasoning_tokens: 3 },
}

/** A whole answer, in OpenAI's own form; `null`: the model never said why it stopped. */
export const completion = (message: object, finish_reason: string | null = 'stop', usage: object = USAGE) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    { index: 0, message: { role: 'assistant', content: null, refusal: null, ...message }, logprobs: null, finish_reason },
  ],
  usage,
})
const wanted = (id: string, name: string, json: string) => ({ id, type: 'function', function: { name, arguments: json } })
const HALF = JSON.stringify(completion({ content: 'Once ' })).slice(0, -30)

type Whole = (reply: Reply, asked: Asked) => unknown
const says =
  (message: object, reason?: string | null): Whole =>
  reply =>
    reply.json(200, completion(message, reason))

/** What a server does that was asked for no stream: those of its models that answer otherwise then. */
export const WHOLE: Readonly<Record<string, Whole>> = {
  plain: (reply, { messages }) =>
    reply.json(200, completion({ content: `Hello, world${messages.at(-1)?.role === 'tool' ? '!' : ''}` })),
  tools: (reply, { messages }) => {
    if (messages.at(-1)?.role === 'tool') return reply.json(200, completion({ content: 'It is sunny' }))
    const calls = [wanted('call_1', 'weather', '{"city": "Ulm"}'), wanted('call_2', 'weather', '{"city": "Bern"}')]
    reply.json(200, completion({ tool_calls: calls }, 'tool_calls'))
  },
  badArguments: says({ tool_calls: [wanted('call_1', 'weather', '{"city": ')] }, 'tool_calls'),
  length: (reply, { max_completion_tokens, max_tokens = max_completion_tokens }) =>
    reply.json(200, completion({ content: 'one two' }, 'length', { prompt_tokens: 3, completion_tokens: max_tokens })),
  unicode: async reply => {
    reply.begin({ 'content-type': 'application/json' })
    await reply.split(JSON.stringify(completion({ content: UNICODE })))
    reply.end()
  },
  reasoning: says({ reasoning_content: 'Let me think', content: 'Done' }),
  filtered: says({ content: 'Once ' }, 'content_filter'),
  cut: async reply => {
    reply.begin({ 'content-type': 'application/json' })
    await reply.write(HALF)
    reply.cut()
  },
  endsEarly: says({ content: 'Once ' }, null),
  malformed: reply => reply.raw(200, 'application/json', HALF),
  stop: (reply, { stop }) => reply.json(200, completion({ content: 'Hello, world'.split((stop as string[])[0]!)[0] })),
  choices: (reply, { n }) => {
    const whole = completion({})
    const choices = Array.from({ length: Number(n) }, (_, index) => ({
      ...whole.choices[0],
      index,
      message: { role: 'assistant', content: `Hello ${index}` },
    }))
    reply.json(200, { ...whole, choices })
  },
  logprobs: reply => {
    const whole = completion({ content: 'Hello!' })
    const content = ['Hel', 'lo', '!'].map(token => ({
      token,
      logprob: -0.5,
      bytes: null,
      top_logprobs: [{ token, logprob: -0.5 }],
    }))
    reply.json(200, { ...whole, choices: [{ ...whole.choices[0], logprobs: { content, refusal: null } }] })
  },
  native: reply => reply.json(200, { ...completion({ content: 'Hello, world' }), service_tier: 'flex' }),
  midway: reply => reply.json(200, { error: { message: 'Overloaded', type: 'server_error' } }),
}
