import { any, exact, exchange, list, ok, post } from '../../exchange.ts'

const call = (tool: string, body: unknown) => post(`/tools/${tool}/call`, body)
const text = list(exact({ type: 'text', text: any('text') }))
const done = (tool: string, more: object) =>
  ok(exact({ success: true, tool, content: text, is_error: false, duration_ms: any('integer'), ...more }))

export default exchange({
  rule: 'runs a tool and answers with its content, its data and how long it took; no arguments, null and no body are the same',
  source: 'decisions.md 2, POST /tools/{name}/call',
  steps: [
    {
      request: call('calculate', { arguments: { expression: '6 * 7' }, timeout: 30, more: 'is ignored' }),
      expect: done('calculate', { structured_content: { result: 42 } }),
    },
    ...[{}, { arguments: {} }, { arguments: null }, { arguments: null, timeout: 9.5 }].map(body => ({
      request: call('current_time', body),
      expect: done('current_time', { structured_content: any('object') }),
    })),
    {
      request: { method: 'POST', path: '/tools/current_time/call' },
      expect: done('current_time', { structured_content: any('object') }),
    },
  ],
})
