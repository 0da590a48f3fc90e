import { chat, exchange, get, refused, remove } from '../../exchange.ts'

const absurd = [
  '..%2f..%2fetc%2fpasswd',
  '%00',
  '%F0%9F%92%A9',
  '__proto__',
  'constructor',
  "';DROP%20TABLE%20x;--",
  '%25',
  '.%2e',
  'a'.repeat(5000),
  'conv_%0a',
  '-1',
  '1e999',
  '%7B%7D',
  '*',
]

export default exchange({
  rule: 'answers absurd ids like any other unknown id',
  source: 'issue 3, bad input: absurd ids',
  steps: absurd.flatMap(id => [
    {
      request: get(`/api/v1/conversations/${id}`),
      expect: refused(404, 'INVALID_VALUE', { field: 'conversation_id', reason: 'not found' }),
    },
    {
      request: remove(`/api/v1/conversations/${id}`),
      expect: refused(404, 'INVALID_VALUE', { field: 'conversation_id', reason: 'not found' }),
    },
    {
      request: chat({ message: 'a', conversation_id: decodeURIComponent(id) }),
      expect: refused(404, 'INVALID_VALUE', { field: 'conversation_id', reason: 'not found' }),
    },
  ]),
})
