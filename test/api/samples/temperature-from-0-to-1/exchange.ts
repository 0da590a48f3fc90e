import { chat, exchange, invalid, ok, stream } from '../../exchange.ts'

export default exchange({
  rule: 'takes a temperature from 0 to 1 and no other',
  source: 'http-api.md "Chat request", temperature; decisions.md 1, wrong type',
  steps: [chat, stream].flatMap(ask => [
    ...[0, 0.5, 1].map(temperature => ({ request: ask({ message: 'a', temperature }), expect: ok() })),
    ...[-0.1, 1.1, '0.5', true, null, [0.5], {}].map(temperature => ({
      request: ask({ message: 'a', temperature }),
      expect: invalid('temperature'),
    })),
  ]),
})
