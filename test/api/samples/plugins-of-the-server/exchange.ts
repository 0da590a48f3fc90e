import { any, exchange, get, invalid, missing, ok, post, refused } from '../../exchange.ts'

const PLANS = '/api/v1/plugins/plans'
const notInstalled = { field: 'name', value: 'svc-plugin-none', reason: 'not found', code: 'PLUGIN_NOT_INSTALLED' }

export default exchange({
  rule: 'shows the plugins of the server with state and accounting, and plans changes only for installed plugins and names of the registry',
  source: 'docs/guides/install-a-plugin.md',
  steps: [
    { request: get('/api/v1/plugins'), expect: ok({ plugins: any('array') }) },
    {
      request: get('/api/v1/plugins/@svc%2Fplugin-rest'),
      expect: ok({
        name: '@svc/plugin-rest',
        state: 'running',
        isolation: 'in-process',
        origin: { kind: 'svc' },
        added: { routes: any('array') },
        permissions: any('object'),
        refusals: {},
        accounting: { calls: any('number'), errors: any('number'), ms: any('number') },
      }),
    },
    {
      request: get('/api/v1/plugins/none'),
      expect: refused(404, 'INVALID_VALUE', { field: 'name', value: 'none', reason: 'not found' }),
    },
    { request: get('/api/v1/plugins?name=x'), expect: invalid('name') },
    {
      request: post(PLANS, { action: 'disable', name: 'svc-plugin-none' }),
      expect: refused(404, 'INVALID_VALUE', notInstalled),
    },
    { request: post(PLANS, { action: 'install' }), expect: missing(['action', 'name'], any('array')) },
    { request: post(PLANS, { action: 'install', name: './weather' }), expect: invalid('name') },
    { request: post(PLANS, { action: 'link', name: 'weather' }), expect: invalid('action') },
    {
      request: post(`${PLANS}/${'0'.repeat(64)}/apply`, undefined),
      expect: refused(404, 'INVALID_VALUE', { field: 'hash', reason: 'not found' }),
    },
  ],
})
