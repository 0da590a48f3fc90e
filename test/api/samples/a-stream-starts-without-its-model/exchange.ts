import { exchange, get, ok, stream } from '../../exchange.ts'

export default exchange({
  rule: 'sends start after chat.start_after_ms although the model has not begun; what fails then is an error event',
  source: 'decisions.md 1, when `start` goes out: or after 2 s (`chat.start_after_ms`)',
  together: 'late',
  config: { chat: { start_after_ms: 0, first_token_timeout_ms: 100 } },
  steps: [
    {
      request: stream({ message: '/delay 60000\na' }),
      expect: {
        status: 200,
        events: [
          { event: 'start' },
          { event: 'error', data: { error_code: 'PROVIDER_ERROR', details: { retryable: true } } },
          { event: 'end', data: { status: 'failed' } },
        ],
      },
    },
    { request: get('/api/v1/conversations'), expect: ok({ conversations: [] }) },
  ],
})
