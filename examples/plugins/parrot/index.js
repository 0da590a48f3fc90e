import { definePlugin, schema } from '@svc/core'
import { Providers } from '@svc/core/contracts'

/** @type {import('@svc/core').Schema<{ type?: string, times: number }>} */
const config = schema({
  type: 'object',
  additionalProperties: false,
  properties: {
    type: { type: 'string', description: 'The type of the entry: parrot.' },
    times: { type: 'integer', minimum: 1, maximum: 10, default: 2, description: 'Number of repetitions.' },
  },
})

/** @type {(request: import('@svc/core/contracts').ModelRequest) => string} */
const lastText = ({ messages }) =>
  messages
    .at(-1)
    ?.parts.map(part => (part.type === 'text' ? part.text : ''))
    .join('') ?? ''

/** Estimates four characters for each token. @type {(text: string) => number} */
const tokensOf = text => Math.ceil(text.length / 4)

/** @type {(times: number) => import('@svc/core/contracts').Provider} */
const createParrot = times => ({
  features: { tool_calling: false, streaming: true, vision: false },
  models: async () => ({ models: [{ id: 'parrot-1', context: 100_000, output: 10_000 }], open: false }),
  countTokens: async request => tokensOf(JSON.stringify(request.messages)),
  probe: async () => undefined,
  async *chat(request, { signal }) {
    const text = lastText(request)
    for (let said = 0; said < times; said++) {
      signal.throwIfAborted()
      const piece = said === 0 ? text : ` ${text}`
      if (piece !== '') yield { type: 'text', text: piece }
    }
    yield { type: 'usage', usage: { input: tokensOf(text), output: tokensOf(text) * times } }
    yield { type: 'finish', reason: 'stop' }
  },
})

export default definePlugin({
  instances: 'providers',
  type: 'parrot',
  config,
  setup(scope) {
    scope.add(Providers, scope.instance ?? 'parrot', createParrot(scope.config.times))
  },
})
