import type { Answer } from '../../exchange.ts'
import { any, beside, exact, exchange, field, get, matching, ok, oneOf, post, refused, remove, time } from '../../exchange.ts'

const [JOBS, SCHEDULES] = ['/api/v1/jobs', '/api/v1/schedules']
const of = (answers: readonly Answer[], at: number, what = '') => `${JOBS}/${field(answers[at], 'id')}${what}`
const nightly = (more: object) => ({
  name: 'nightly',
  cron: '0 3 * * *',
  every_ms: null,
  time_zone: 'Europe/Berlin',
  job: exact({ kind: 'manual.wait' }),
  origin: 'added',
  is_paused: false,
  next: time,
  last: null,
  ...more,
})

export default exchange({
  rule: 'adds, cancels and retries jobs, and adds, previews, pauses, runs and removes schedules',
  source: 'docs/reference/http.md',
  alone: true,
  config: { plugins: [beside('../../../support/manual-jobs.ts', import.meta.url)] },
  steps: [
    { request: get(JOBS), expect: ok(exact({ jobs: [], next_cursor: null })) },
    {
      request: post(JOBS, { kind: 'manual.wait', due_at: '2100-01-01T00:00:00Z', group: 'g' }),
      expect: { status: 201, body: { kind: 'manual.wait', state: 'queued', due_at: '2100-01-01T00:00:00.000Z', group: 'g' } },
    },
    { request: answers => get(of(answers, 1)), expect: ok({ state: 'queued', input: null }) },
    { request: answers => get(of(answers, 1, '/log')), expect: ok(exact({ entries: [] })) },
    { request: answers => post(of(answers, 1, '/cancel'), undefined), expect: ok({ state: 'cancelled', finished_at: time }) },
    { request: answers => post(of(answers, 1, '/retry'), undefined), expect: ok({ state: oneOf('queued', 'running') }) },
    { request: answers => post(of(answers, 1, '/cancel'), undefined), expect: ok({ state: 'cancelled' }) },
    {
      request: post(JOBS, { kind: 'nothing.here' }),
      expect: refused(404, 'INVALID_VALUE', { field: 'kind', reason: 'not found' }),
    },
    { request: get(`${JOBS}/nothing`), expect: refused(404, 'INVALID_VALUE', { field: 'job_id', reason: 'not found' }) },

    {
      request: post(`${SCHEDULES}/preview`, { cron: '0 3 * * *', time_zone: 'Europe/Berlin', count: 2 }),
      expect: ok(exact({ ticks: [time, time] })),
    },
    {
      request: post(`${SCHEDULES}/preview`, { cron: '0 3 * * nonday' }),
      expect: refused(400, 'INVALID_VALUE', { field: 'cron', reason: any('text') }),
    },
    {
      request: post(SCHEDULES, { name: 'nightly', cron: '0 3 * * *', time_zone: 'Europe/Berlin', job: { kind: 'manual.wait' } }),
      expect: { status: 201, body: nightly({}) },
    },
    { request: get(`${SCHEDULES}/nightly`), expect: ok(nightly({ ticks: [] })) },
    { request: post(`${SCHEDULES}/nightly/pause`, undefined), expect: ok(nightly({ is_paused: true, next: null })) },
    { request: post(`${SCHEDULES}/nightly/resume`, undefined), expect: ok(nightly({})) },
    { request: post(`${SCHEDULES}/nightly/run`, undefined), expect: { status: 201, body: { kind: 'manual.wait' } } },
    { request: answers => post(of(answers, 15, '/cancel'), undefined), expect: ok({ state: 'cancelled' }) },
    { request: remove(`${SCHEDULES}/nightly`), expect: ok(exact({ success: true })) },
    {
      request: get(`${SCHEDULES}/nightly`),
      expect: refused(404, 'INVALID_VALUE', { field: 'schedule', value: matching(/^nightly$/), reason: 'not found' }),
    },
  ],
})
