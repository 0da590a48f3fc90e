import { exchange, get, ok, refused } from '../../exchange.ts'

const from = (hops: string) => ({ ...get('/api/v1/modes'), headers: { 'x-forwarded-for': hops } })

export default exchange({
  rule: 'counts clients behind a trusted proxy by the rightmost address that is no proxy, whatever they wrote left of it',
  source: 'decisions.md 1, limits: X-Forwarded-For counts only from server.trusted_proxies',
  alone: true,
  config: { server: { trusted_proxies: ['127.0.0.0/8', 'fd00::/8'], rate_limit: { enabled: true, requests_per_minute: 1 } } },
  steps: [
    { request: from('203.0.113.1'), expect: ok() },
    { request: from('203.0.113.2, fd00::1'), expect: ok() },
    { request: from('198.51.100.9, 203.0.113.1, fd00::1'), expect: refused(429, 'RATE_LIMITED', { limit: 1, window: 60 }) },
    { request: from('2001:db8::1'), expect: ok() },
    { request: from('2001:db8::2'), expect: refused(429, 'RATE_LIMITED', { limit: 1, window: 60 }) },
  ],
})
