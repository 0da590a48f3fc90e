import { type Answer, any, exact, exchange, get, missing, ok, post, refused } from '../../exchange.ts'

const TEAM =
  'name: pair\nformation: sequential\nmembers:\n  a: { role: Writer, goal: Write, tools: [] }\n  b: { role: Critic, goal: Judge, tools: [] }\n'
const notFound = (field: string) => refused(404, 'INVALID_VALUE', { field, reason: 'not found' })
const runIn = (answer: Answer | undefined) => (answer!.body as { runs: { run_id: string }[] }).runs[0]!.run_id
const member = (name: string, status: string) => ({ event: 'member', data: { member: name, status } })

export default exchange({
  rule: 'shows a provider with its models and tests it; shows teams and streams a run member by member',
  source: 'issue 25, 3: providers (state, prices, breaker, test); teams (list, show, run as a stream)',
  alone: true,
  config: { models: { prices: { 'local/local-1': { input: 1, output: 2 } } } },
  files: { 'teams/pair.yaml': TEAM },
  steps: [
    {
      request: get('/api/v1/providers/local'),
      expect: ok({ name: 'local', healthy: true, models: any('array'), currency: 'USD' }),
    },
    { request: get('/api/v1/providers/none'), expect: notFound('provider') },
    {
      request: post('/api/v1/providers/local/test', { model: 'local-1' }),
      expect: ok({ success: true, provider: 'local', model: 'local-1', attempts: 1, error: null }),
    },
    {
      request: post('/api/v1/providers/local/test', { model: 'none' }),
      expect: ok({ success: false, error: { error_code: 'MODEL_NOT_FOUND' } }),
    },
    { request: get('/api/v1/teams'), expect: ok({ teams: any('array') }) },
    { request: get('/api/v1/teams/pair'), expect: ok({ name: 'pair', formation: 'sequential', problems: [] }) },
    { request: get('/api/v1/teams/none'), expect: notFound('team') },
    { request: post('/api/v1/teams/pair/run', {}), expect: missing(['task'], []) },
    { request: get('/api/v1/teams/runs'), expect: ok({ runs: [], next_cursor: null }) },
    { request: get('/api/v1/teams/runs/none'), expect: notFound('run') },
    {
      request: post('/api/v1/teams/pair/run', { task: 'Say hello' }),
      expect: {
        status: 200,
        events: [
          { event: 'start', data: exact({ type: 'start', team: 'pair', id: any('text'), run_id: any('text'), at: any('text') }) },
          ...['a', 'b'].flatMap(name => [member(name, 'started'), member(name, 'completed')]),
          { event: 'end', data: { status: 'completed', error: null } },
        ],
      },
    },
    {
      request: post('/api/v1/teams/pair/run', { task: 'Say hello', budget: { rounds: 1 } }),
      expect: {
        status: 200,
        events: [
          { event: 'start', data: { type: 'start', team: 'pair' } },
          member('a', 'started'),
          member('a', 'completed'),
          { event: 'end', data: { status: 'completed', result: { answer: null, partial: { budget: 'rounds' } } } },
        ],
      },
    },
    {
      request: get('/api/v1/teams/runs?status=partial'),
      expect: ok({ runs: [{ team: 'pair', status: 'partial', rounds: 1, stop: { budget: 'rounds' } }], next_cursor: null }),
    },
    {
      request: answers => get(`/api/v1/teams/runs/${runIn(answers.at(-1))}`),
      expect: ok({ team: 'pair', status: 'partial' }),
    },
  ],
})
