import { chat, exact, exchange, refused, say, stream } from '../../exchange.ts'

export default exchange({
  rule: 'refuses an unknown model with those there are',
  source: 'decisions.md 1, code → status and details of MODEL_NOT_FOUND',
  steps: [chat, stream, say].flatMap(ask => [
    {
      request: ask({ message: 'a', provider: 'local', model: 'nothing' }),
      expect: refused(
        404,
        'MODEL_NOT_FOUND',
        exact({ provider: 'local', model: 'nothing', available: ['local-1', 'local-small'] })
      ),
    },
    {
      request: ask({ message: 'a', model: 'nothing' }),
      expect: refused(404, 'MODEL_NOT_FOUND', { model: 'nothing', available: ['local-1', 'local-small'] }),
    },
  ]),
})
