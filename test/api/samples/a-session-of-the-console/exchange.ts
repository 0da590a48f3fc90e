import { exchange, invalid, post } from '../../exchange.ts'

const KEY = 'the-key-of-the-operator'
const from = (site: string, credential = KEY) => ({
  ...post('/api/v1/console/session', { credential }),
  headers: { authorization: `Bearer ${KEY}`, 'sec-fetch-site': site },
})

export default exchange({
  rule: 'begins a session of the console for a page of its own, with the credential that the request carries',
  source: 'issue 28, part 3',
  alone: true,
  env: { SVC_API_KEY: KEY },
  config: { server: { auth: { enabled: true } } },
  steps: [
    { request: from('same-origin'), expect: { status: 201, body: { principal: 'api-key' } } },
    ...['cross-site', 'same-site', 'none'].map(site => ({
      request: from(site),
      expect: invalid('sec-fetch-site', { reason: 'must be same-origin' }),
    })),
    { request: from('same-origin', 'another'), expect: { status: 401 } },
  ],
})
