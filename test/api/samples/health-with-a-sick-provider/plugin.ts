import { definePlugin, svcError } from '@svc/core'
import { Providers } from '@svc/core/contracts'

export default definePlugin({
  setup: scope =>
    void scope.add(Providers, 'sick', {
      features: { tool_calling: false, streaming: false, vision: false },
      models: async () => ({ models: [{ id: 'none' }], open: false }),
      countTokens: async () => 1,
      async *chat() {
        yield await Promise.reject<never>(new Error('never asked'))
      },
      async probe() {
        throw svcError('MODEL_FAILED', 'cannot be reached', { details: { kind: 'network', retryable: true } })
      },
    }),
})
