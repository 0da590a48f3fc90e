import { chat, exchange, ok } from '../../exchange.ts'

export default exchange({
  rule: 'takes a tool that is named twice as named once',
  source: 'http-api.md "Chat request", tools',
  steps: [
    {
      request: chat({ message: '/tool current_time {}', tools: ['current_time', 'current_time'] }),
      expect: ok({ tools_used: [{ tool: 'current_time', success: true }] }),
    },
  ],
})
