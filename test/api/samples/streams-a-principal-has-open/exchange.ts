import { beside, chat, exact, exchange, ok, refused, stream } from '../../exchange.ts'

export default exchange({
  rule: 'refuses a stream more than server.max_streams_per_principal with 429, until one ends; other requests go on',
  source: 'issue 4, 2: concurrent requests and open streams a principal',
  together: 'names',
  config: { server: { max_streams_per_principal: 1 }, plugins: [beside('../../../support/hold.ts', import.meta.url)] },
  steps: [
    { request: stream({ message: '/tool hold {}\na' }), hold: true },
    { request: stream({ message: 'b' }), expect: refused(429, 'RATE_LIMITED', exact({ limit: 1, window: 0, retry_after: 1 })) },
    { request: chat({ message: 'c' }), expect: ok() },
    { request: { method: 'POST', path: '/release' }, expect: { status: 204 } },
    { finish: true, expect: ok() },
    { request: stream({ message: 'd' }), expect: ok() },
  ],
})
