import { exchange, get, including, matching, ok } from '../../exchange.ts'

export default exchange({
  rule: 'examines the parts of the server and reports each finding',
  source: 'console.md 3, doctor',
  steps: [
    {
      request: get('/api/v1/doctor'),
      expect: ok({ ok: true, findings: including({ name: 'database', state: 'ok', message: 'works' }) }),
    },
    {
      request: { ...get('/api/v1/doctor'), headers: { accept: 'text/event-stream' } },
      expect: { status: 200, headers: { 'content-type': matching(/^text\/event-stream/) } },
    },
  ],
})
