import { beside, chat, exchange, matching, ok, post, reply, stream } from '../../exchange.ts'

export default exchange({
  rule: 'lets a turn that runs keep the model it began with',
  source: 'decisions.md 1, which model answers: in-flight requests keep what they began with',
  together: 'switches',
  config: { plugins: [beside('../../../support/hold.ts', import.meta.url)] },
  steps: [
    { request: stream({ message: '/tool hold {}\na' }), hold: true },
    { request: post('/api/v1/model/switch', { provider: 'local', model: 'local-small' }), expect: ok() },
    { request: { method: 'POST', path: '/release' }, expect: { status: 204 } },
    {
      finish: true,
      expect: {
        status: 200,
        events: [
          { event: 'start', data: { model: 'local-1' } },
          { event: 'tool_call' },
          { event: 'tool_result' },
          reply(matching(/You said: a$/)),
          { event: 'end', data: { model: 'local-1' } },
        ],
      },
    },
    { request: chat({ message: 'a' }), expect: ok({ model: 'local-small' }) },
  ],
})
