import { exact, exchange, get, invalid, post } from '../../exchange.ts'

const KEY = 'the-key-of-the-operator'
const LOGIN = '/api/v1/console/login'
const OWN = { 'sec-fetch-site': 'same-origin' }
const begin = (headers: Readonly<Record<string, string>>, body: Readonly<Record<string, unknown>> = {}) => ({
  ...post(LOGIN, body),
  headers,
})
/** An answer of an issuer to a login that was not begun here. */
const credential = `console_oidc.${Buffer.from('code=c&state=s').toString('base64url')}`

export default exchange({
  rule: 'begins a login at an issuer for a page of its own at the configured address, and ends it only in that browser',
  source: 'issue 28, part 3',
  alone: true,
  env: { SVC_API_KEY: KEY },
  config: {
    server: { auth: { enabled: true, oidc: { issuer: 'https://login.example.org', audience: 'svc' } } },
    console: { oidc: { client_id: 'console', redirect_uri: 'https://svc.example.org/console/oidc' } },
  },
  steps: [
    { request: get(LOGIN), expect: { status: 200, body: exact({ oidc: exact({ label: 'login.example.org' }) }) } },
    { request: begin({}), expect: invalid('sec-fetch-site', { reason: 'must be same-origin' }) },
    {
      request: begin({ 'sec-fetch-site': 'cross-site' }),
      expect: invalid('sec-fetch-site', { reason: 'must be same-origin' }),
    },
    { request: begin(OWN), expect: invalid('origin', { reason: 'must be https://svc.example.org' }) },
    { request: begin(OWN, { place: 7 }), expect: { status: 400 } },
    { request: begin(OWN, { more: true }), expect: { status: 400 } },
    {
      request: {
        ...post('/api/v1/console/session', { credential }),
        headers: { ...OWN, authorization: `Bearer ${credential}` },
      },
      expect: { status: 401 },
    },
  ],
})
