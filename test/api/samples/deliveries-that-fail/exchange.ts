import { any, exact, exchange, get, matching, ok, post, refused, stream, time } from '../../exchange.ts'
import type { Answer } from '../../exchange.ts'

const HOOKS = '/api/v1/webhooks'
const pathOf = (answers: readonly Answer[]) => `${HOOKS}/${(answers[0]!.body as { webhook: { id: string } }).webhook.id}`
const deadIn = (answer: Answer) => (answer.body as { deliveries: { id: string }[] }).deliveries[0]!.id
const delivery = (more: object) =>
  exact({
    id: any('text'),
    event_id: any('text'),
    event_type: 'svc.turn_completed',
    attempts: any('integer'),
    max_attempts: 10,
    created_at: time,
    ...more,
  })

export default exchange({
  rule: 'makes a delivery to a forbidden address a dead letter, lists it and queues it again on request; a test says why',
  source: 'docs/guides/receive-webhooks.md',
  alone: true,
  env: { SVC_SECRETS_KEY: 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=' },
  steps: [
    {
      request: post(HOOKS, { url: 'http://10.1.2.3/hook', types: ['turn_completed'] }),
      expect: { status: 201 },
    },
    { request: answers => get(pathOf(answers)), expect: ok({ url: 'http://10.1.2.3/hook', enabled: true }) },
    {
      request: answers => post(`${pathOf(answers)}/test`, undefined),
      expect: ok(exact({ delivered: false, status: null, duration_ms: any('integer'), error: any('text') })),
    },
    // the turn ends while the next step waits for its delivery
    { request: stream({ message: '/delay 3000\nhi' }), hold: true },
    { request: get('/api/v1/events?types=job_failed'), hold: 'svc.job_failed' },
    {
      request: answers => get(`${pathOf(answers)}/deliveries?state=failed&limit=1`),
      expect: ok({
        deliveries: [
          delivery({
            state: 'failed',
            next_attempt_at: null,
            finished_at: time,
            error: matching(/not public|forbidden|address/i),
          }),
        ],
      }),
    },
    {
      request: answers => post(`${pathOf(answers)}/deliveries/${deadIn(answers[5]!)}/retry`, undefined),
      expect: ok({ id: any('text'), event_type: 'svc.turn_completed' }),
    },
    {
      request: answers => post(`${pathOf(answers)}/deliveries/none/retry`, undefined),
      expect: refused(404, 'INVALID_VALUE', { field: 'delivery', reason: 'not found' }),
    },
  ],
})
