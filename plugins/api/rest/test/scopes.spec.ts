// Not a unit test: it serves HTTP.
import { Routes } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const PLUGINS = [
  'http',
  'rest',
  'metrics',
  'chat',
  'model-calls',
  'conversations',
  'selection',
  'modes',
  'provider-local',
  'store-memory',
]

/** The scope of each route: `chat` for chat and conversations, `admin` for switches, `read` for every other GET; health has none. */
const SCOPES = {
  'DELETE /api/v1/conversations/:id': 'chat',
  'GET /api/v1/config/effective': 'read',
  'GET /api/v1/conversations': 'chat',
  'GET /api/v1/conversations/:id': 'chat',
  'GET /api/v1/modes': 'read',
  'GET /api/v1/profiles': 'read',
  'GET /api/v1/providers': 'read',
  'GET /api/v1/me': 'read',
  'GET /api/v1/status': 'read',
  'GET /api/v1/tools': 'read',
  'GET /health': 'open',
  'GET /health/live': 'open',
  'GET /health/ready': 'open',
  'GET /metrics': 'read',
  'GET /openapi.json': 'read',
  'POST /api/v1/chat': 'chat',
  'POST /api/v1/chat/stream': 'chat',
  'POST /api/v1/conversations': 'chat',
  'POST /api/v1/mode/switch': 'admin',
  'POST /api/v1/model/switch': 'admin',
  'POST /api/v1/profile/switch': 'admin',
}

describe('the scopes of the routes', () => {
  it('are as listed, and only health routes have none', async () => {
    await using host = await testHost(PLUGINS.map(pluginFolder), { config: { server: { port: 0 }, providers: { local: {} } } })
    const routes = host.slot(Routes).entries()
    const scopes = Object.fromEntries(routes.map(([, { method, path, scope = 'open' }]) => [`${method} ${path}`, scope]))
    expect(scopes).to.deep.equal({ ...scopes, ...SCOPES })
    expect(Object.keys(scopes).filter(route => scopes[route] === 'open' && !route.startsWith('GET /health'))).to.deep.equal([])
  })

  it('are counted by rate limits, except health and metrics', async () => {
    await using host = await testHost(PLUGINS.map(pluginFolder), { config: { server: { port: 0 }, providers: { local: {} } } })
    const uncounted = host
      .slot(Routes)
      .entries()
      .flatMap(([, { path, uncounted }]) => (uncounted ? [path] : []))
    expect(uncounted.sort()).to.deep.equal(['/health', '/health/live', '/health/ready', '/metrics'])
  })
})
