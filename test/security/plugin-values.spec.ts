import { routesOf } from '../support/stranger.ts'
import { expect } from 'chai'
import { type Attacked, describeIsolated, startAttacked } from '../support/attacker.ts'
import { until } from '../support/wait.ts'
import { type Client, createClient } from '../support/client.ts'

const PLUGIN = 'svc-plugin-odd'

/** What it adds and answers is plain data, and of no form that the contract names. */
const CODE = `import { definePlugin } from '@svc/core'
import * as contracts from '@svc/core/contracts'

const nested = (() => { let one = 'x'; for (let at = 0; at < 400; at++) one = { one, list: [at] }; return one })()
const ODD = [
  null, undefined, 5, -1, NaN, Infinity, 7n, '', 'text', '__proto__', true, [], {}, [null], [[]], [undefined],
  { toString: 1, valueOf: 1, toJSON: 1 }, { length: 1e9 }, { message: 5 }, { status: 5, headers: 7, body: 9 },
  { status: 700, headers: { 'x\\n': 'y' }, body: 'x' }, { status: 200, headers: { 'x-odd': '\\u0001' }, body: 'x' },
  { status: 200, headers: null, body: 'x' }, { type: 'text' }, { type: 'text', text: 5 }, { type: 5 }, { type: 'finish' }, { type: 'tool_call', id: {}, name: [], arguments: 5 },
  { content: 5 }, { content: [null] }, { content: [{ type: 'text' }] }, { content: [{ type: 'image', data: 5 }] }, { content: [], structured: 7n },
  new Date(NaN), new Date(0), new Uint8Array(3), 'x'.repeat(100_000), nested, JSON.parse('{"__proto__":{"a":1},"constructor":5}'),
  { status: 'healthy', detail: 5, reason: {} }, { models: 5 }, { models: [null, 5, {}] }, [{ name: 5, values: 7 }], [{ name: 'a b', help: 5, type: 'x', values: [{ labels: 5 }] }],
]
let at = 0
const next = () => ODD[at++ % ODD.length]
async function* several() {
  for (let count = 0; count < 3; count++) yield next()
}
const answers = token => Object.fromEntries(Object.entries(token.methods).map(([name, kind]) => [name, kind === 'call' ? async () => next() : several]))
const SLOTS = ['tools', 'routes', 'checks', 'health_facts', 'metric_sources', 'providers', 'auth_schemes', 'resources', 'prompts', 'modes', 'model_aliases', 'teams', 'verticals', 'workflows', 'workflow_nodes', 'peer_answers']
const tokens = Object.values(contracts).filter(token => token?.what === 'slot' && SLOTS.includes(token.name))
const KEYS = ['description', 'category', 'effects', 'parameters', 'result', 'modes', 'title', 'timeoutMs', 'method', 'path', 'summary', 'scope', 'query', 'body', 'responses', 'streams',
  'features', 'headers', 'challenge', 'guards', 'uri', 'name', 'mimeType', 'arguments', 'tools', 'prompt', 'nodes', 'edges', 'members', 'id', 'settings', 'outputs', 'model', 'provider', 'keywords', 'teams', 'workflows']

export default definePlugin({
  setup(scope) {
    const add = (token, name, data) => {
      try {
        scope.add(token, name, { ...data, ...answers(token) })
      } catch {}
    }
    const flood = () => {
      for (const token of tokens)
        for (let count = 0; count < 12; count++) add(token, 'odd-' + count, Object.fromEntries(KEYS.filter((_, place) => (place + count) % 3).map(key => [key, next()])))
    }
    const info = { description: 'Floods', category: 'text', effects: [], parameters: { type: 'object' } }
    scope.add(contracts.Tools, 'flood', { ...info, call: async () => (flood(), { content: [{ type: 'text', text: 'flooded' }] }) })
    scope.add(contracts.Tools, 'odd', { ...info, call: async () => next() })
    const route = { method: 'GET', path: '/odd', summary: 'Odd' }
    scope.add(contracts.Routes, 'odd', { ...route, handle: async () => next() })
    scope.add(contracts.Routes, 'odd-stream', { ...route, path: '/odd-stream', streams: 'text/event-stream', stream: several })
    for (const token of [contracts.Checks, contracts.HealthFacts, contracts.MetricSources]) scope.add(token, 'odd', answers(token))
  },
})
`
const SLOTS = ['tools', 'routes', 'checks', 'health_facts', 'metric_sources', 'providers', 'auth_schemes', 'resources', 'prompts']
const MORE = ['modes', 'model_aliases', 'teams', 'verticals', 'workflows', 'workflow_nodes', 'peer_answers']
const CURATED = [
  'metrics',
  'mcp-server',
  'workflows',
  'workflow-nodes',
  'queue-store',
  'teams',
  'recommend',
  'cache',
  'chat-cache',
  'chat-policy',
]
const ROUNDS = 20

describeIsolated('an isolated plugin that adds and answers values of no form that was agreed', function () {
  this.timeout(60_000)
  let attacked: Attacked
  let client: Client
  before(async () => {
    const { contributes: routes, permissions } = routesOf({
      odd: { method: 'GET', path: '/odd' },
      'odd-stream': { method: 'GET', path: '/odd-stream' },
    })
    const contributes = { ...Object.fromEntries([...SLOTS, ...MORE].map(slot => [slot, ['*']])), ...routes }
    attacked = await startAttacked({
      plugins: [{ name: PLUGIN, code: CODE, svc: { contributes, permissions } }],
      curated: CURATED,
      config: { mcp: { server: { enabled: true } } },
    })
    client = createClient(attacked.service.url)
  })
  after(async () => {
    client?.close()
    await attacked?.[Symbol.asyncDispose]()
  })
  const PATHS = [
    '/health',
    '/health/ready',
    '/api/v1/status',
    '/metrics',
    '/api/v1/models',
    '/api/v1/tools',
    '/api/v1/modes',
    '/api/v1/workflows',
    '/openapi.json',
    '/odd',
    '/odd-stream',
  ]
  const chat = (message: string) => client.post('/api/v1/chat', { message })
  async function round(): Promise<void> {
    // an answer may be cut off
    for (const path of PATHS) await client.get(path).catch(() => {})
    // what reports of all parts is no worse than its worst part
    for (const path of ['/health', '/api/v1/status', '/metrics']) statuses.add((await client.get(path)).status)
    await chat('/tool odd {}')
    await client.post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} })
    await client.post('/api/v1/tools/odd/call', { arguments: {} })
  }
  const statuses = new Set<number>()
  const survived = () => expect(attacked.service.output()).to.not.match(/worker_exited|worker_hung|ERR_UNHANDLED/)

  it('costs its own answers alone: the worker serves on', async () => {
    for (let count = 0; count < ROUNDS; count++) await round()
    survived()
    expect([...statuses].filter(status => status !== 200 && status !== 503)).to.deep.equal([])
    expect((await chat('hello')).text).to.contain('You said: hello')
  })

  it('costs nothing more where it adds such items to every slot', async () => {
    await chat('/tool flood {}')
    for (let count = 0; count < 3; count++) await round()
    const health = await until(
      () => client.get('/health'),
      answer => answer.status < 600
    )
    expect(health.status).to.be.a('number')
    survived()
  })
})
