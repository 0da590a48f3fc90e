import { beside, chat, exchange, matching, ok } from '../../exchange.ts'

export default exchange({
  rule: 'stops a tool that takes too long and tells the model so; the turn goes on',
  source: 'decisions.md 1, sizes: tool 60 s, a configuration key; a tool that fails inside a chat turn',
  together: 'eager',
  config: { plugins: [beside('../../../support/ponder.ts', import.meta.url)], chat: { tool_timeout_ms: 50 } },
  steps: [
    {
      request: chat({ message: '/tool ponder {}' }),
      expect: ok({ tools_used: [{ tool: 'ponder', success: false, error: matching(/50 ms/) }] }),
    },
  ],
})
