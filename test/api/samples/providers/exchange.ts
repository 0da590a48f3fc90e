import { exact, exchange, get, ok } from '../../exchange.ts'

export default exchange({
  rule: 'lists providers with their models and what they can do',
  source: 'http-api.md "Provider record"',
  steps: [
    {
      request: get('/api/v1/providers'),
      expect: ok(
        exact({
          providers: [
            exact({
              name: 'local',
              models: ['local-1', 'local-small'],
              features: exact({ tool_calling: true, streaming: true, vision: true }),
            }),
          ],
        })
      ),
    },
  ],
})
