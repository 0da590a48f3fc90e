import { exact, exchange, get, ok } from '../../exchange.ts'

const nothing = (task_type: string, vertical: string | null) =>
  ok(exact({ task_type, complexity: 'low', mode: 'build', vertical, count: 0, recommendations: [] }))

export default exchange({
  rule: 'recommends nothing for a task that fits nothing, and from a vertical that there is not',
  source: 'decisions.md 1, recommendation: unknown vertical count 0',
  steps: [
    {
      request: get('/api/v1/capabilities/recommend?task_type=bake%20a%20cake&complexity=low'),
      expect: nothing('bake a cake', null),
    },
    {
      request: get('/api/v1/capabilities/recommend?task_type=code_review&complexity=low&vertical=astrology'),
      expect: nothing('code_review', 'astrology'),
    },
  ],
})
