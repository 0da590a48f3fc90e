import { exact, exchange, get, matching, post } from '../../exchange.ts'

const unknown = {
  status: 404,
  body: exact({ success: false, error: matching(/there is no tool/), error_code: 'TOOL_NOT_FOUND', details: {} }),
}
const NAMES = ['nothing', '__proto__', 'constructor', 'CURRENT_TIME', 'current_time%20', 'x'.repeat(500)]

export default exchange({
  rule: 'answers 404 TOOL_NOT_FOUND for a tool that there is not, read or called',
  source: 'decisions.md 2, unknown tool',
  steps: NAMES.flatMap(name => [
    { request: get(`/tools/${name}`), expect: unknown },
    { request: post(`/tools/${name}/call`, { arguments: {} }), expect: unknown },
  ]),
})
