import { any, beside, exact, exchange, field, get, invalid, ok, post, refused, time } from '../../exchange.ts'
import type { Answer } from '../../exchange.ts'

const TOOLS = '/api/v1/tools'
const start = (tool: string) => ({
  event: 'start',
  data: exact({ type: 'start', request_id: any('text'), call_id: any('text'), tool, timestamp: time }),
})
const end = (tool: string, status: string) => ({
  event: 'end',
  data: exact({ type: 'end', call_id: any('text'), tool, status, duration_ms: any('integer'), timestamp: time }),
})
const result = (more: object) => ({
  event: 'result',
  data: exact({ type: 'result', call_id: any('text'), success: true, content: any('array'), structured_content: null, ...more }),
})
interface Question {
  readonly request_id: string
  readonly call_id: string
}
const question = (answer: Answer | undefined) => (answer!.body as { chats: Question[] }).chats[0]!

export default exchange({
  rule: 'shows a tool with its whole schema, streams a call with its progress, and takes the answer to its question',
  source: 'issue 25, 3: tools with their whole JSON Schema; call as a stream with progress and questions',
  alone: true,
  config: { plugins: [beside('../../../support/call-tools.ts', import.meta.url)] },
  steps: [
    {
      request: get(`${TOOLS}/steps`),
      expect: ok({ name: 'steps', title: 'Steps', callable: true, input_schema: any('object'), effects: ['read'] }),
    },
    { request: get(`${TOOLS}/none`), expect: refused(404, 'TOOL_NOT_FOUND') },
    {
      request: post(`${TOOLS}/steps/call`, {}),
      expect: {
        status: 200,
        events: [
          start('steps'),
          ...[1, 2, 3].map(at => ({
            event: 'progress',
            data: exact({ type: 'progress', progress: at, total: 3, message: `step ${at}` }),
          })),
          result({ structured_content: { steps: 3 } }),
          end('steps', 'completed'),
        ],
      },
    },
    { request: post(`${TOOLS}/steps/call`, { arguments: { pause_ms: 'x' } }), expect: invalid('arguments.pause_ms') },
    { request: post(`${TOOLS}/consent/call`, {}), expect: refused(403, 'FORBIDDEN', { tool: 'consent' }) },
    { request: post(`${TOOLS}/consent/call`, { interactive: true }), hold: 'ask' },
    { request: get('/api/v1/workflows/questions'), expect: ok({ chats: [{ tool: 'consent', answerable: true }] }) },
    {
      request: answers => {
        const { request_id, call_id: question_id } = question(answers.at(-1))
        return post(`${TOOLS}/consent/answer`, { request_id, question_id, allow: true })
      },
      expect: ok(exact({ success: true })),
    },
    {
      finish: true,
      expect: {
        status: 200,
        events: [
          start('consent'),
          { event: 'ask', data: { tool: 'consent', requests: null } },
          result({}),
          end('consent', 'completed'),
        ],
      },
    },
    {
      request: answers =>
        post(`${TOOLS}/consent/answer`, { request_id: field(answers[0], 'name'), question_id: 'q', allow: true }),
      expect: refused(404, 'INVALID_VALUE', { field: 'call_id' }),
    },
  ],
})
