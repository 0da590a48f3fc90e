import { chat, exchange, get, list, ok } from '../../exchange.ts'

const models = [{ id: 'mine', context: 10_000, output: 100 }]

export default exchange({
  rule: 'lets the first configured provider answer where nothing else decides',
  source: 'decisions.md 1, which model answers: else the first configured provider',
  together: 'eager',
  config: { providers: { zeta: { type: 'local', models }, alpha: { type: 'local' } } },
  steps: [
    { request: chat({ message: 'a' }), expect: ok({ provider: 'zeta', model: 'mine' }) },
    {
      request: get('/api/v1/config/effective'),
      expect: ok({ provider: 'zeta', model: 'mine', source: { provider: 'default', model: 'default' } }),
    },
    { request: get('/api/v1/providers'), expect: ok({ providers: list({ features: { tool_calling: true } }, 3) }) },
  ],
})
