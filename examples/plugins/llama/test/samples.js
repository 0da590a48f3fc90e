import { startServer } from './server.js'

const upstream = await startServer()

/** @typedef {import('@svc/core/contracts').ModelRequest} ModelRequest */
/** @type {(model: string, fields?: Partial<ModelRequest>) => ModelRequest} */
const ask = (model, fields = {}) => ({ model, messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }], ...fields })

const tools = ['weather', 'news'].map(name => ({ name, description: `Returns the ${name}`, parameters: { type: 'object' } }))

/** Samples for the kits that `svc plugins test` and the test beside this file run. */
/** @type {import('@svc/testing').PluginSamples} */
const samples = {
  config: { providers: { mine: { type: 'llama', base_url: upstream.url, api_key_env: 'LLAMA_KEY' } } },
  env: { LLAMA_KEY: 'key-of-the-test' },
  provider: {
    connections: () => upstream.open(),
    secrets: ['key-of-the-test'],
    plain: ask('plain'),
    usage: { request: ask('plain'), usage: { input: 3, output: 2 } },
    reasoning: { request: ask('reasoning'), text: 'First this' },
    unicode: { request: ask('unicode'), text: 'Grüße 👋🏽 世界' },
    length: ask('length', { maxTokens: 1 }),
    endless: ask('endless'),
    silent: ask('silent'),
    stalled: ask('stalled'),
    tools: {
      request: ask('calls', { tools }),
      calls: [
        { tool: 'weather', arguments: { city: 'Ulm' } },
        { tool: 'news', arguments: {} },
      ],
      results: calls =>
        ask('calls', {
          tools,
          messages: [
            ...ask('calls').messages,
            { role: 'assistant', parts: calls },
            {
              role: 'tool',
              parts: calls.map(({ id, tool }) => ({ type: 'tool_result', id, tool, content: [], isError: false })),
            },
          ],
        }),
    },
    badArguments: ask('text_arguments', { tools }),
    failures: {
      overloaded: ask('busy'),
      authentication: ask('unauthorized'),
      rate_limited: ask('limited'),
      bad_request: ask('unknown'),
    },
    retryAfter: { request: ask('limited'), ms: 2000 },
    midway: { request: ask('error_inside'), kind: 'overloaded' },
    cut: ask('cut'),
    endsEarly: ask('ends_early'),
    malformed: ask('malformed'),
  },
}

export default samples
