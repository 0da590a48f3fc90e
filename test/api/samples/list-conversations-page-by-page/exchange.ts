import { type Answer, any, chat, exact, exchange, field, get, list, ok } from '../../exchange.ts'

const KEY = { 'x-api-key': 'the-key' }
const read = (path: string) => ({ ...get(path), headers: KEY })
const PATH = '/api/v1/conversations'

export default exchange({
  rule: 'gives pages of at most limit conversations, next_cursor leads to the next, and null ends them',
  source: 'decisions.md 1, conversations: next_cursor (null at the end)',
  together: 'auth',
  env: { SVC_API_KEY: 'the-key' },
  config: { server: { auth: { enabled: true } } },
  steps: [
    { request: read(PATH), expect: ok(exact({ conversations: [], next_cursor: null })) },
    ...['one', 'two', 'three'].map(message => ({
      request: { ...chat({ message: `/delay 5\n${message}` }), headers: KEY },
      expect: ok(),
    })),
    {
      request: read(`${PATH}?limit=2`),
      expect: answers => ok(exact({ conversations: [idOf(answers[3]), idOf(answers[2])], next_cursor: any('text') })),
    },
    {
      request: answers => read(`${PATH}?limit=2&cursor=${encodeURIComponent(field(answers[4], 'next_cursor'))}`),
      expect: answers => ok(exact({ conversations: [idOf(answers[1])], next_cursor: null })),
    },
    { request: read(`${PATH}?limit=3`), expect: ok({ conversations: list(any('object'), 3), next_cursor: null }) },
  ],
})

const idOf = (answer: Answer | undefined) => ({ conversation_id: field(answer, 'conversation_id') })
