import { exchange, get, ok, refused, remove, stream } from '../../exchange.ts'

const as = (host: string) => ({ headers: { host } })
const asked = [
  get('/health'),
  get('/api/v1/status'),
  stream({ message: 'a' }),
  remove('/health'),
  get('/nowhere'),
  get('/metrics'),
]

export default exchange({
  rule: 'answers on loopback to loopback names only, on every path: a page whose name was bent to this address gets 403',
  source: 'decisions.md 1, host: Host is checked against loopback names, server.host and server.allowed_hosts',
  steps: [
    ...asked.map(request => ({
      request: { ...request, ...as('evil.example') },
      expect: refused(403, 'FORBIDDEN', { field: 'host', value: 'evil.example' }),
    })),
    ...['localhost.evil.example', '192.168.0.1:8080', '127.0.0.1.nip.io', 'x@localhost'].map(host => ({
      request: { ...get('/health'), ...as(host) },
      expect: refused(403, 'FORBIDDEN', { field: 'host', value: host }),
    })),
    ...['localhost', 'LOCALHOST:99', '127.9.9.9', '[::1]:1'].map(host => ({
      request: { ...get('/health'), ...as(host) },
      expect: ok(),
    })),
  ],
})
