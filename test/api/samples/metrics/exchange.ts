import { chat, exchange, get, matching, ok } from '../../exchange.ts'

export default exchange({
  rule: 'shows its metrics in the text format of Prometheus, with buckets written as documented',
  source: 'http-api.md "Discovery, health, status, metrics"; decisions.md 1, metrics',
  steps: [
    { request: chat({ message: 'a' }), expect: ok() },
    {
      request: get('/metrics'),
      expect: ok(undefined, { 'content-type': matching(/^text\/plain; ?version=0\.0\.4/) }),
    },
    ...[
      /^# TYPE svc_requests_total counter$/m,
      /^svc_requests_total\{[^}]*route="\/api\/v1\/chat"[^}]*\} [1-9]/m,
      /^# TYPE svc_request_duration_seconds histogram$/m,
      /^svc_request_duration_seconds_bucket\{[^}]*le="0\.1"[^}]*\} \d/m,
      /^svc_request_duration_seconds_bucket\{[^}]*le="1\.0"[^}]*\} \d/m,
      /^svc_request_duration_seconds_bucket\{[^}]*le="\+Inf"[^}]*\} \d/m,
      /^svc_request_duration_seconds_sum/m,
      /^svc_request_duration_seconds_count/m,
      /^process_resident_memory_bytes/m,
      /^nodejs_eventloop_lag/m,
      /^svc_tokens_total\{/m,
      /^svc_hook_calls_total\{[^}]*plugin="@svc\/plugin-metrics"[^}]*\} [1-9]/m,
      /^svc_hook_errors_total\{[^}]*\} 0/m,
      /^svc_hook_seconds_total\{/m,
    ].map(line => ({ request: get('/metrics'), expect: { status: 200, text: matching(line) } })),
  ],
})
