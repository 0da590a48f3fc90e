import { exact, exchange, ok, post, refused } from '../../exchange.ts'

const endless = { pattern: '(a+)+$', text: `${'a'.repeat(60)}!` }

export default exchange({
  rule: 'answers 504 TIMEOUT when a tool takes longer than its caller gives it, and goes on',
  source: 'decisions.md 2, unknown tool: a time-out: 504 TIMEOUT; time-outs',
  steps: [
    {
      request: post('/tools/match_regex/call', { arguments: endless, timeout: 0.05 }),
      expect: refused(504, 'TIMEOUT', exact({ tool: 'match_regex', timeout_ms: 50 })),
    },
    { request: post('/tools/match_regex/call', { arguments: { pattern: 'a+', text: 'aa' } }), expect: ok({ success: true }) },
  ],
})
