import { openUpstream } from '@svc/testing'

/** @typedef {import('@svc/testing').Reply} Reply */
/** @typedef {import('@svc/testing').Received} Received */

const line = (/** @type {object} */ data) => `${JSON.stringify({ model: 'any', created_at: '2026-01-01T00:00:00Z', ...data })}\n`
const says = (/** @type {string} */ content) => line({ message: { role: 'assistant', content }, done: false })
const thinks = (/** @type {string} */ thinking) => line({ message: { role: 'assistant', content: '', thinking }, done: false })
const calls = (/** @type {string} */ name, /** @type {unknown} */ args) =>
  line({ message: { role: 'assistant', content: '', tool_calls: [{ function: { name, arguments: args } }] }, done: false })
const TYPE = { 'content-type': 'application/x-ndjson' }
const ends = (reason = 'stop', written = 2) =>
  line({
    message: { role: 'assistant', content: '' },
    done: true,
    done_reason: reason,
    prompt_eval_count: 3,
    eval_count: written,
  })

const begin = (/** @type {Reply} */ reply) => {
  reply.begin(TYPE)
  return reply
}

/** The lines of each model; the others break in their own way. @type {Record<string, readonly string[]>} */
const LINES = {
  plain: [says('Hello, '), says('you'), ends()],
  reasoning: [thinks('First '), thinks('this'), says('Done'), ends()],
  unicode: [says('Grüße '), says('👋🏽 世界'), ends()],
  length: [says('Hel'), ends('length', 1)],
  calls: [calls('weather', { city: 'Ulm' }), calls('news', {}), ends()],
  text_arguments: [calls('weather', '{"city"'), ends()],
  error_inside: [says('Hm'), line({ error: 'an error was encountered while running the model: out of memory' })],
  ends_early: [says('Hm')],
  malformed: [says('Hm'), '{"message":\n', ends()],
}

/** @type {Record<string, (reply: Reply) => unknown>} */
const BREAKS = {
  endless: reply => begin(reply).endless(at => says(`${at} `)),
  silent: reply => reply.silence(),
  stalled: reply =>
    begin(reply)
      .write(says('Hm'))
      .then(() => reply.silence()),
  cut: reply =>
    begin(reply)
      .write(says('Hm'))
      .then(() => reply.cut()),
  busy: reply => reply.json(503, { error: 'server busy, please try again.  maximum pending requests exceeded' }),
  unauthorized: reply => reply.json(401, { error: 'unauthorized: key-of-the-test' }),
  limited: reply => reply.json(429, { error: 'too many requests' }, { 'retry-after': '2' }),
}

/** What the server sends without `stream`: all lines in one. @type {(lines: readonly string[]) => object} */
function whole(lines) {
  const all = lines.map(text => JSON.parse(text))
  const join = (/** @type {string} */ key) => all.map(({ message }) => message?.[key] ?? '').join('')
  const tool_calls = all.flatMap(({ message }) => message?.tool_calls ?? [])
  const message = {
    role: 'assistant',
    content: join('content'),
    thinking: join('thinking'),
    ...(tool_calls.length > 0 && { tool_calls }),
  }
  return { ...all.at(-1), message }
}

/** @type {(received: Received, reply: Reply) => unknown} */
function chat({ body, text }, reply) {
  const { model, stream } = /** @type {{ model: string, stream: boolean }} */ (body)
  const name = model === 'calls' && text.includes('"role":"tool"') ? 'plain' : model
  if (BREAKS[name]) return BREAKS[name](reply)
  const lines = LINES[name]
  if (!lines) return reply.json(404, { error: `model "${model}" not found, try pulling it first` })
  const isWhole = lines.every(part => !part.includes('"error"') && part.endsWith('}\n')) && lines.at(-1)?.includes('"done":true')
  if (!stream && isWhole) return reply.json(200, whole(lines))
  return begin(reply)
    .split(lines.join(''), 7)
    .then(() => reply.end())
}

/** A server on loopback with the protocol of Ollama. The name of the model selects its behavior. */
export const startServer = () =>
  openUpstream((received, reply) =>
    received.path === '/api/tags'
      ? reply.json(200, { models: Object.keys({ ...LINES, ...BREAKS }).map(name => ({ name, model: name, size: 1 })) })
      : chat(received, reply)
  )
