import { any, beside, chat, exchange, get, ok, without } from '../../exchange.ts'

export default exchange({
  rule: 'goes on without an optional plugin that fails, and shows it as degraded without detail',
  source: 'issue 3, 2: a plugin marked optional that fails leaves the host running and shows in /health',
  together: 'sizes',
  config: { plugins: [{ use: beside('./plugin.ts', import.meta.url), optional: true }] },
  steps: [
    { request: get('/health'), expect: { ...ok({ status: 'degraded', plugins: any('object') }), text: without(/secret/) } },
    { request: chat({ message: 'a' }), expect: ok() },
  ],
})
