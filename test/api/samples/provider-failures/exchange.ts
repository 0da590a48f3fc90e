import { absent, chat, exchange, refused, say, stream } from '../../exchange.ts'

const failures = [
  { kind: 'rate_limited', upstream_status: 429, retryable: true, again: '1' },
  { kind: 'overloaded', upstream_status: 503, retryable: true, again: '1' },
  { kind: 'bad_request', upstream_status: 400, retryable: false, again: absent },
  { kind: 'authentication', upstream_status: 401, retryable: false, again: absent },
  { kind: 'content_refused', upstream_status: 400, retryable: false, again: absent },
  { kind: 'network', upstream_status: absent, retryable: true, again: absent },
  { kind: 'timeout', upstream_status: absent, retryable: true, again: absent },
]

export default exchange({
  rule: 'tells every failure of a provider as PROVIDER_ERROR 503 with the upstream status and whether a retry makes sense, with Retry-After where the failure says when',
  source: "decisions.md 1, code → status, details of PROVIDER_ERROR; an upstream's own rate limit",
  steps: [chat, stream, say].flatMap(ask =>
    failures.map(({ kind, again, ...details }) => ({
      request: ask({ message: `/fail ${kind}` }),
      expect: {
        ...refused(503, 'PROVIDER_ERROR', { provider: 'local', ...details, kind: absent, stack: absent }),
        headers: { 'retry-after': again },
      },
    }))
  ),
})
