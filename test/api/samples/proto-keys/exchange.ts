import { absent, any, chat, eachBodyRoute, exchange, get, missing, ok } from '../../exchange.ts'

export default exchange({
  rule: 'gives keys like __proto__ no meaning',
  source: 'issue 3, bad input: __proto__ keys',
  steps: [
    ...eachBodyRoute((path, { good, required }) => [
      {
        request: { method: 'POST', path, raw: `{"__proto__":${JSON.stringify(good)}}` },
        expect: missing(required, any('array')),
      },
      {
        request: { method: 'POST', path, raw: `{"constructor":{"prototype":${JSON.stringify(good)}}}` },
        expect: missing(required, ['constructor']),
      },
    ]),
    {
      request: { method: 'POST', path: '/api/v1/chat', raw: '{"message":"a","__proto__":{"temperature":99,"polluted":true}}' },
      expect: ok({ response: 'You said: a' }),
    },
    {
      request: chat({ message: '/tool current_time {"__proto__":{"time_zone":"UTC"},"time_zone":"UTC"}' }),
      expect: ok({ tools_used: [{ tool: 'current_time' }] }),
    },
    { request: get('/api/v1/config/effective'), expect: ok({ polluted: absent }) },
  ],
})
