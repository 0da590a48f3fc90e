import { definePlugin } from '@svc/core'
import { Providers } from '@svc/core/contracts'

export default definePlugin({
  setup: scope =>
    void scope.add(Providers, 'open', {
      features: { tool_calling: false, streaming: true, vision: false },
      models: async () => ({ models: [{ id: 'known' }], open: true }),
      countTokens: async () => 1,
      async *chat({ model }) {
        yield { type: 'text', text: `I am ${model}` }
        yield { type: 'usage', usage: { input: 1, output: 1 } }
        yield { type: 'finish', reason: 'stop' }
      },
      async probe() {},
    }),
})
