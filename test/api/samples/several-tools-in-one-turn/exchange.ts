import { chat, exchange, ok } from '../../exchange.ts'

export default exchange({
  rule: 'runs the tool calls of one round at once and lists them in order',
  source: 'decisions.md 1, provider-local: several = in parallel; http-api.md, tools_used',
  steps: [
    {
      request: chat({
        message: '/tool current_time {"time_zone":"UTC"}\n/tool list_directory {"path":"."}\n/tool current_time {}',
      }),
      expect: ok({ tools_used: [{ tool: 'current_time' }, { tool: 'list_directory' }, { tool: 'current_time' }] }),
    },
  ],
})
