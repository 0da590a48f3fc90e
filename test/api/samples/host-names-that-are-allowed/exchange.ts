import { exchange, get, ok, refused } from '../../exchange.ts'

const as = (host: string) => ({ ...get('/health/live'), headers: { host } })

export default exchange({
  rule: 'answers to the names of server.allowed_hosts as well',
  source: 'decisions.md 1, host',
  together: 'names',
  config: { server: { allowed_hosts: ['svc.example'] } },
  steps: [
    { request: as('svc.example'), expect: ok() },
    { request: as('SVC.example:443'), expect: ok() },
    { request: as('www.svc.example'), expect: refused(403, 'FORBIDDEN', { field: 'host', value: 'www.svc.example' }) },
  ],
})
