import { chat, exact, exchange, refused, say, stream } from '../../exchange.ts'

export default exchange({
  rule: 'refuses an unknown provider with those there are',
  source: 'decisions.md 1, code → status and details of PROVIDER_NOT_FOUND',
  steps: [chat, stream, say].map(ask => ({
    request: ask({ message: 'a', provider: 'nobody' }),
    expect: refused(503, 'PROVIDER_NOT_FOUND', exact({ provider: 'nobody', available: ['local'] })),
  })),
})
