import { any, exact, exchange, from, get, including, list, ok } from '../../exchange.ts'

const schema = exact({
  type: 'object',
  properties: { time_zone: { type: 'string', description: any('text') } },
  required: [],
  additionalProperties: false,
})

export default exchange({
  rule: 'lists the published tools at /tools with name, description and their JSON Schema, in the order of their names, and counts them',
  source: 'tool-protocol.md "Tool schema", "Endpoints"; decisions.md 2, GET /tools',
  steps: [
    {
      request: get('/tools'),
      expect: ok(
        exact({
          tools: list(exact({ name: any('text'), description: any('text'), parameters: any('object') })),
          count: from(20, 100),
        })
      ),
    },
    {
      request: get('/tools'),
      expect: ([first]) => ok(first?.body),
    },
    {
      request: get('/tools'),
      expect: ok({ tools: including({ name: 'current_time', description: any('text'), parameters: schema }) }),
    },
    {
      request: get('/tools/current_time'),
      expect: ok(exact({ name: 'current_time', description: any('text'), parameters: schema })),
    },
  ],
})
