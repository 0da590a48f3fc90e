import { any, exact, exchange, get, invalid, matching, ok, time } from '../../exchange.ts'

const ID = 'a-request-in-the-log'

export default exchange({
  rule: 'returns the lines of a request from the log',
  source: 'docs/guides/follow-events.md',
  steps: [
    { request: { ...get('/api/v1/modes'), headers: { 'x-request-id': ID } }, expect: ok() },
    {
      request: get(`/api/v1/logs?request_id=${ID}&level=info`),
      expect: ok(
        exact({
          lines: [
            exact({
              time,
              level: 'info',
              worker: any('text'),
              plugin: matching(/http/),
              message: any('text'),
              request_id: ID,
              principal: 'anonymous',
              fields: { method: 'GET', status: 200 },
            }),
          ],
          complete: true,
        })
      ),
    },
    { request: get('/api/v1/logs?level=loud'), expect: invalid('level') },
    { request: get('/api/v1/logs?limit=1001'), expect: invalid('limit') },
    { request: get('/api/v1/logs?since=yesterday'), expect: invalid('since') },
  ],
})
