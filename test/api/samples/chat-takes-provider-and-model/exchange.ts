import { chat, exchange, ok, say, stream } from '../../exchange.ts'

export default exchange({
  rule: 'lets the provider and model named in the request answer',
  source: 'http-api.md "Chat request"; decisions.md 1, which model answers',
  steps: [
    {
      request: chat({ message: 'a', provider: 'local', model: 'local-small' }),
      expect: ok({ provider: 'local', model: 'local-small' }),
    },
    { request: chat({ message: 'a', model: 'local-small' }), expect: ok({ provider: 'local', model: 'local-small' }) },
    { request: chat({ message: 'a', provider: 'local' }), expect: ok({ provider: 'local', model: 'local-1' }) },
    { request: say({ message: 'a', model: 'local-small' }), expect: ok() },
    {
      request: stream({ message: 'a', model: 'local-small' }),
      expect: ok(undefined, { 'content-type': 'text/event-stream' }),
    },
  ],
})
