import { beside, exact, exchange, get, including, ok } from '../../exchange.ts'

export default exchange({
  rule: "writes a parameter's type as the schema's word: a union joined, none as any, a local $ref followed; adds a plugin's category",
  source: 'decisions.md 1, tool record',
  together: 'parts',
  config: { plugins: [beside('../an-internal-fault/plugin.ts', import.meta.url)] },
  steps: [
    {
      request: get('/api/v1/tools'),
      expect: ok({
        tools: including({
          name: 'odd',
          category: 'games',
          parameters: exact({
            union: exact({ type: 'string|null', required: true }),
            choice: exact({ type: 'number|string', description: 'This or that', required: false }),
            anything: exact({ type: 'any', description: 'Whatever', required: false }),
            referred: exact({ type: 'integer', description: 'A number of steps', required: false }),
          }),
        }),
        categories: including('games'),
      }),
    },
  ],
})
