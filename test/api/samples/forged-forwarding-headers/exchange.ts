import { exchange, get, ok, refused } from '../../exchange.ts'

const from = (address: string) => ({
  ...get('/api/v1/modes'),
  headers: { 'x-forwarded-for': address, forwarded: `for=${address}`, 'x-real-ip': address },
})

export default exchange({
  rule: 'counts a client by the address of its connection: a forged forwarding header buys nothing',
  source: 'decisions.md 1, limits: X-Forwarded-For counts only from server.trusted_proxies',
  together: 'few',
  config: { server: { rate_limit: { enabled: true, requests_per_minute: 2 } } },
  steps: [
    { request: from('203.0.113.1'), expect: ok(undefined, { 'x-ratelimit-remaining': '1' }) },
    { request: from('203.0.113.2'), expect: ok(undefined, { 'x-ratelimit-remaining': '0' }) },
    { request: from('203.0.113.3'), expect: refused(429, 'RATE_LIMITED', { limit: 2, window: 60 }) },
  ],
})
