import { exact, exchange, from, get, matching, ok, refused } from '../../exchange.ts'

/** A client of its own beside those of other samples. */
const THERE = { 'x-forwarded-for': '203.0.113.9' }
const key = (value: string) => ({ ...get('/api/v1/status'), headers: { ...THERE, 'x-api-key': value } })
const slowed = {
  ...refused(429, 'RATE_LIMITED', exact({ limit: 10, window: 60, retry_after: from(1, 60) })),
  headers: { 'retry-after': matching(/^[1-6]?\d$/) },
}

export default exchange({
  rule: 'answers 429 after ten refused credentials a minute from one address; good ones that were seen from there in the last ten minutes still pass',
  source: 'decisions.md 3, guessing',
  together: 'auth',
  env: { SVC_API_KEY: 'the-key' },
  config: { server: { auth: { enabled: true }, trusted_proxies: ['127.0.0.0/8', '::1'] } },
  steps: [
    { request: key('the-key'), expect: ok() },
    ...Array.from({ length: 10 }, (_, n) => ({ request: key(`guess-${n}`), expect: refused(401, 'AUTHENTICATION_FAILED') })),
    { request: key('guess-11'), expect: slowed },
    { request: key('the-key'), expect: ok() },
    { request: { ...get('/api/v1/status'), headers: THERE }, expect: refused(401, 'AUTHENTICATION_FAILED') },
  ],
})
