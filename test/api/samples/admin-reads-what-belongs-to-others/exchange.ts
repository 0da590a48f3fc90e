import { beside, exchange, field, get, list, noConversation, ok, post, refused, remove, say } from '../../exchange.ts'

const as = (scope: string, request: ReturnType<typeof post>) => ({ ...request, headers: { 'x-scopes': scope } })
const lacks = (scope: string) => refused(403, 'FORBIDDEN', { scope })

export default exchange({
  rule: 'lets the scope admin alone read conversations and runs of every principal, and change none; other principals get 404',
  source: 'decisions.md 3, admin: implies read of everything and of the conversations and runs of all principals',
  alone: true,
  config: {
    server: { auth: { enabled: true } },
    mcp: { server: { enabled: true } },
    plugins: [
      beside('../scopes/plugin.ts', import.meta.url),
      beside('../../../support/runs.ts', import.meta.url),
      { use: '@svc/plugin-auth-api-key', enabled: false },
    ],
  },
  steps: [
    { request: as('chat', say({ message: 'hi' })), expect: ok() },
    {
      request: ([said]) => as('chat read', get(`/api/v1/conversations/${field(said, 'conversation_id')}`)),
      expect: ([said]) => noConversation(field(said, 'conversation_id')),
    },
    {
      request: as('admin', get('/api/v1/conversations')),
      expect: ([said]) => ok({ conversations: list({ conversation_id: field(said, 'conversation_id') }) }),
    },
    {
      request: ([said]) => as('admin', get(`/api/v1/conversations/${field(said, 'conversation_id')}`)),
      expect: ok({ message_count: 2 }),
    },
    {
      request: ([said]) => as('admin', remove(`/api/v1/conversations/${field(said, 'conversation_id')}`)),
      expect: lacks('chat'),
    },
    { request: as('admin', say({ message: 'hi' })), expect: lacks('chat') },
    { request: as('workflows', post('/api/v1/workflows/run', { workflow: 'sum', input: { a: 2 } })), expect: ok() },
    {
      request: answers => as('admin', get(`/api/v1/workflows/${field(answers[6], 'workflow_id')}/status`)),
      expect: ok({ status: 'completed' }),
    },
    {
      request: answers => as('admin', get(`/api/v1/workflows/${field(answers[6], 'workflow_id')}/steps`)),
      expect: ok(),
    },
    {
      request: answers => as('admin', post(`/api/v1/workflows/${field(answers[6], 'workflow_id')}/retry`, undefined)),
      expect: lacks('workflows'),
    },
    { request: as('admin', get('/api/v1/status')), expect: ok() },
    { request: as('admin', get('/tools')), expect: ok() },
    { request: as('admin', post('/tools/current_time/call', {})), expect: lacks('tools') },
  ],
})
