import { any, exact, exchange, get, post, refused } from '../../exchange.ts'

const TURNS = [`turn_${'0'.repeat(32)}_d29ya2Vy`, 'turn_', 'x', 'a'.repeat(3_000)]

export default exchange({
  rule: 'answers 404 INVALID_VALUE for a turn that is not open, where its stream is continued or cancelled',
  source: 'decisions.md 3, a client that leaves a stream',
  steps: TURNS.flatMap(turn => [
    {
      request: get(`/api/v1/chat/stream/${turn}`),
      expect: refused(
        404,
        'INVALID_VALUE',
        exact({ field: 'turn_id', value: any('text'), reason: 'not found', hint: any('text') })
      ),
    },
    {
      request: post(`/api/v1/chat/stream/${turn}/cancel`, undefined),
      expect: refused(
        404,
        'INVALID_VALUE',
        exact({ field: 'turn_id', value: any('text'), reason: 'not found', hint: any('text') })
      ),
    },
  ]),
})
