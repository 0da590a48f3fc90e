import { absent, exchange, get, ok } from '../../exchange.ts'

export default exchange({
  rule: 'lets pages of every origin use the server where server.cors.origins says *',
  source: 'http-api.md, server.cors.origins [list with a wildcard]',
  together: 'names',
  config: { server: { cors: { enabled: true, origins: ['*'], methods: ['GET', 'POST', 'PUT', 'DELETE'] } } },
  steps: ['https://app.example', 'null'].map(origin => ({
    request: { ...get('/health'), headers: { origin } },
    expect: ok(undefined, { 'access-control-allow-origin': '*', vary: absent }),
  })),
})
