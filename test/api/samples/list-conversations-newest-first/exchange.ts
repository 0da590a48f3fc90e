import { type Answer, chat, exact, exchange, field, get, ok, time } from '../../exchange.ts'

const PATH = '/api/v1/conversations'

export default exchange({
  rule: 'lists conversations, the one with the latest turn first',
  source: 'issue 3, 5: GET /api/v1/conversations, newest first; decisions.md 1, conversations',
  steps: [
    { request: chat({ message: 'elder' }), expect: ok() },
    { request: chat({ message: '/delay 5\nyounger' }), expect: ok() },
    {
      request: get(`${PATH}?limit=2`),
      expect: ([elder, younger]) => ok({ conversations: [summary(younger, 2), summary(elder, 2)] }),
    },
    {
      request: ([elder]) => chat({ message: '/delay 5\nonce more', conversation_id: field(elder, 'conversation_id') }),
      expect: ok(),
    },
    {
      request: get(`${PATH}?limit=2`),
      expect: ([elder, younger]) => ok({ conversations: [summary(elder, 4), summary(younger, 2)] }),
    },
  ],
})

function summary(answer: Answer | undefined, message_count: number) {
  return exact({ conversation_id: field(answer, 'conversation_id'), created_at: time, updated_at: time, message_count })
}
