import { exchange, get, ok, refused } from '../../exchange.ts'

const notFound = refused(404, 'INVALID_VALUE', { field: 'app', reason: 'not found' })

export default exchange({
  rule: 'reads an app only by the name of a tool that has one',
  source: 'docs/guides/bridge-mcp-servers.md',
  steps: [
    { request: get('/api/v1/tools/calculate'), expect: ok({ name: 'calculate', app: false }) },
    { request: get('/api/v1/tools/calculate/app'), expect: notFound },
    { request: get('/api/v1/tools/none/app'), expect: notFound },
    { request: get('/api/v1/tools/calculate/app?uri=ui://x'), expect: refused(400, 'INVALID_VALUE') },
  ],
})
