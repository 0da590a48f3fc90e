import { chat, exchange, matching, ok } from '../../exchange.ts'

const wish = '/tool current_time {}'

export default exchange({
  rule: 'offers all tools that the mode allows when tools is absent, the named ones when it names some, none when it is empty',
  source: 'decisions.md 1, `tools` absent, `[]`',
  steps: [
    { request: chat({ message: wish }), expect: ok({ tools_used: [{ tool: 'current_time', success: true }] }) },
    { request: chat({ message: wish, tools: ['current_time'] }), expect: ok({ tools_used: [{ tool: 'current_time' }] }) },
    { request: chat({ message: wish, tools: ['read_file'] }), expect: ok({ response: matching(/not offered/), tools_used: [] }) },
    { request: chat({ message: wish, tools: [] }), expect: ok({ response: matching(/not offered/), tools_used: [] }) },
  ],
})
