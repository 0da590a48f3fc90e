import { any, exchange, get, including, matching, ok } from '../../exchange.ts'

const ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'

export default exchange({
  rule: 'keeps a trace of each turn with its cost, in the trace of the client, and lists and reads it as soon as the request has ended',
  source: 'console.md 3, traces',
  alone: true,
  config: { traces: { enabled: true }, models: { prices: { 'local/local-1': { input: 1, output: 2 } } } },
  steps: [
    {
      request: {
        method: 'POST',
        path: '/api/v1/chat',
        headers: { traceparent: `00-${ID}-${PARENT}-01`, 'x-request-id': 'traced' },
        body: { message: 'hello' },
      },
      expect: ok(),
    },
    {
      request: get('/api/v1/traces?request=traced'),
      expect: ok({
        traces: [
          {
            trace_id: ID,
            parent_span_id: PARENT,
            span_id: matching(/^[0-9a-f]{16}$/),
            name: 'POST /api/v1/chat',
            kind: 'server',
            status: 'ok',
            error_code: null,
            request_id: 'traced',
            models: ['local-1'],
            usage: { input_tokens: any('integer'), output_tokens: any('integer') },
            cost: any('number'),
          },
        ],
        next_cursor: null,
      }),
    },
    {
      request: get(`/api/v1/traces/${ID}?limit=10000`),
      expect: ok({
        trace_id: ID,
        roots: [{ trace_id: ID }],
        spans: including({
          trace_id: ID,
          name: 'chat local-1',
          kind: 'client',
          start_time_unix_nano: matching(/^\d{19}$/),
          status: { code: 'unset' },
          cost: any('number'),
          plugin: '@svc/plugin-model-calls',
        }),
        next_cursor: null,
      }),
    },
  ],
})
