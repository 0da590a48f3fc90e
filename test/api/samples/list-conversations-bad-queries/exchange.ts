import { any, exchange, get, invalid, ok } from '../../exchange.ts'

const PATH = '/api/v1/conversations'

export default exchange({
  rule: 'refuses a limit that is no integer from 1 to 200, a cursor that is none, and a parameter given twice',
  source: 'decisions.md 1, conversations; issue 3, bad input',
  steps: [
    ...['0', '-1', '201', '1.5', 'ten', '', '%20', '1e1', '0x10', '99999999999999999999'].map(limit => ({
      request: get(`${PATH}?limit=${limit}`),
      expect: invalid('limit'),
    })),
    ...['nonsense', '', '%00', 'a'.repeat(4000), '%F0%9F%92%A9'].map(cursor => ({
      request: get(`${PATH}?cursor=${cursor}`),
      expect: invalid('cursor'),
    })),
    { request: get(`${PATH}?limit=1&limit=2`), expect: invalid('limit') },
    { request: get(`${PATH}?limit=1&more=yes`), expect: invalid('more') },
    { request: get(`${PATH}?limit=1`), expect: ok({ conversations: any('array') }) },
  ],
})
