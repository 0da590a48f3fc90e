import { any, chat, exchange, get, ok, READ_ROUTES } from '../../exchange.ts'

export default exchange({
  rule: 'gives every answer, errors too, an X-Request-Id',
  source: 'decisions.md 1, request id',
  steps: [
    {
      request: { ...get('/nowhere'), headers: { 'x-request-id': 'a.b-c_9' } },
      expect: { status: 404, headers: { 'x-request-id': 'a.b-c_9' } },
    },
    { request: { ...chat({}), headers: { 'x-request-id': 'Q' } }, expect: { status: 400, headers: { 'x-request-id': 'Q' } } },
    { request: get('/health'), expect: ok(undefined, { 'x-request-id': any('text') }) },
    ...READ_ROUTES.map(path => ({
      request: { ...get(path), headers: { 'x-request-id': 'z'.repeat(128) } },
      expect: ok(undefined, { 'x-request-id': 'z'.repeat(128) }),
    })),
  ],
})
