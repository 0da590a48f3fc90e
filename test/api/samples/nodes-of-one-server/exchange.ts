import { exchange, get, invalid, ok } from '../../exchange.ts'

export default exchange({
  rule: 'lists no nodes for a server that belongs to no cluster',
  source: 'cluster.md 5',
  steps: [
    { request: get('/api/v1/nodes'), expect: ok({ cluster: null, nodes: [] }) },
    { request: get('/api/v1/nodes?cluster=svc'), expect: invalid('cluster') },
  ],
})
