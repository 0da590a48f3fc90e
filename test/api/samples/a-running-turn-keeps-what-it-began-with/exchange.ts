import { chat, exchange, ok, post, reply, stream } from '../../exchange.ts'

export default exchange({
  rule: 'lets a turn that runs keep the model it began with',
  source: 'decisions.md 1, which model answers: in-flight requests keep what they began with',
  alone: true,
  config: { chat: { start_after_ms: 0 } },
  steps: [
    { request: stream({ message: '/delay 300\na' }), hold: true },
    { request: post('/api/v1/model/switch', { provider: 'local', model: 'local-small' }), expect: ok() },
    {
      finish: true,
      expect: {
        status: 200,
        events: [
          { event: 'start', data: { model: 'local-1' } },
          reply('You said: a'),
          { event: 'end', data: { model: 'local-1' } },
        ],
      },
    },
    { request: chat({ message: 'a' }), expect: ok({ model: 'local-small' }) },
  ],
})
