import { any, exchange, invalid, matching, missing, post, refused } from '../../exchange.ts'

const run = (content: unknown, more: object = {}) => ({
  threadId: 't',
  runId: 'r',
  messages: [{ id: 'm', role: 'user', content }],
  ...more,
})
const agent = (body: unknown, profile = 'default') => post(`/api/v1/agui/${profile}`, body)

export default exchange({
  rule: 'runs a profile as an agent of AG-UI 1.0: a stream of its events, and an error record before the stream begins',
  source: 'docs/guides/use-ag-ui.md',
  steps: [
    {
      request: agent(run('hello')),
      expect: {
        status: 200,
        headers: { 'content-type': matching(/^text\/event-stream/) },
        text: matching(
          /^data: \{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1\.0".*"type":"RUN_FINISHED".*\n\n$/s
        ),
      },
    },
    {
      request: agent(run('/tool get_weather {}', { tools: [{ name: 'get_weather', description: 'the weather' }] })),
      expect: {
        status: 200,
        text: matching(/"toolCallName":"get_weather".*"outcome":\{"type":"success","pendingToolCallIds":\["/s),
      },
    },
    {
      request: agent(run('hello'), 'nobody'),
      expect: refused(404, 'INVALID_VALUE', { field: 'profile', value: 'nobody', reason: 'not found' }),
    },
    { request: agent({ threadId: 't', messages: [] }), expect: missing(['threadId', 'runId', 'messages'], any('array')) },
    { request: agent(run(7)), expect: invalid('messages[0].content') },
    { request: agent(run('/fail overloaded\nhello')), expect: refused(503, 'PROVIDER_ERROR', { provider: 'local' }) },
  ],
})
