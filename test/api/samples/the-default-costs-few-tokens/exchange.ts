import { chat, exchange, from, ok } from '../../exchange.ts'

export default exchange({
  rule: 'sends prompt and tools of the default configuration in less than 600 tokens',
  source: 'issue 22, part 7',
  steps: [{ request: chat({ message: 'x' }), expect: ok({ tokens_used: { input: from(200, 599) } }) }],
})
