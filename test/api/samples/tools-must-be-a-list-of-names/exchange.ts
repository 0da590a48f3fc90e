import { chat, exchange, invalid, stream } from '../../exchange.ts'

export default exchange({
  rule: 'refuses a tools field that is no list of names',
  source: 'http-api.md "Chat request", tools',
  steps: [chat, stream].flatMap(ask => [
    ...['current_time', {}, null, 7].map(tools => ({ request: ask({ message: 'a', tools }), expect: invalid('tools') })),
    { request: ask({ message: 'a', tools: ['current_time', 7] }), expect: invalid('tools[1]') },
    { request: ask({ message: 'a', tools: [''] }), expect: invalid('tools[0]') },
    { request: ask({ message: 'a', tools: [null] }), expect: invalid('tools[0]') },
  ]),
})
