import { exchange, get, matching, ok } from '../../exchange.ts'

const MADE = matching(/^[A-Za-z0-9._-]{8,128}$/)

export default exchange({
  rule: 'makes a request id of its own where the given one is unfit',
  source: 'decisions.md 1, request id: 1–128 of [A-Za-z0-9._-], else made',
  steps: ['z'.repeat(129), 'a b', 'a/b', 'a,b', 'ü', '"', '{{7*7}}', ''].map(id => ({
    request: { ...get('/health/live'), headers: { 'x-request-id': Buffer.from(id).toString('latin1') } },
    expect: ok(undefined, { 'x-request-id': MADE }),
  })),
})
