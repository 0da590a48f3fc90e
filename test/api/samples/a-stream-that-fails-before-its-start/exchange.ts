import { exchange, invalid, refused, stream } from '../../exchange.ts'

export default exchange({
  rule: 'answers what fails before the start of a stream as an ordinary error record with its status',
  source: 'decisions.md 1, when `start` goes out',
  steps: [
    {
      request: stream({ message: '/fail overloaded' }),
      expect: refused(503, 'PROVIDER_ERROR', { upstream_status: 503, retryable: true }),
    },
    { request: stream({ message: '/fail context_too_long' }), expect: invalid('message') },
  ],
})
