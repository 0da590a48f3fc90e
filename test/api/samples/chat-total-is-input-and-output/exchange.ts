import { chat, exchange, ok } from '../../exchange.ts'

export default exchange({
  rule: 'counts tokens as input, output and their sum',
  source: 'decisions.md 1, tokens_used',
  steps: [
    { request: chat({ message: 'count me' }), expect: ok() },
    {
      request: chat({ message: 'count me' }),
      expect: ([first]) => {
        const { input, output } = (first!.body as { tokens_used: { input: number; output: number } }).tokens_used
        return ok({ tokens_used: { input, output, total: input + output } })
      },
    },
  ],
})
