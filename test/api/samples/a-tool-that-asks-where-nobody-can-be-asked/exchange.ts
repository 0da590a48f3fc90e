import { beside, chat, exchange, matching, ok, stream } from '../../exchange.ts'

const message = '/tool launch {}'
const error = matching(/^Not allowed: .*this turn has no interactive reader/)

export default exchange({
  rule: 'denies a tool call that asks in words where no person can be asked: a plain chat, whatever it says, and a stream that is not interactive',
  source: 'an extension of v1: `interactive`; decisions.md 1, unknown body fields are ignored',
  together: 'parts',
  config: { plugins: [beside('../a-tool-that-asks/plugin.ts', import.meta.url)] },
  steps: [
    ...[{ message }, { message, interactive: true }, { message, interactive: 'of course' }].map(body => ({
      request: chat(body),
      expect: ok({ tools_used: [{ tool: 'launch', success: false, error }] }),
    })),
    ...[{ message }, { message, interactive: false }].map(body => ({
      request: stream(body),
      expect: {
        status: 200,
        events: [
          { event: 'start' },
          { event: 'tool_call' },
          { event: 'tool_result', data: { success: false, error } },
          { event: 'reply' },
          { event: 'end', data: { status: 'completed' } },
        ],
      },
    })),
  ],
})
