import { exchange, get, ok } from '../../exchange.ts'

const CREDENTIALS: readonly Readonly<Record<string, string>>[] = [
  { 'x-api-key': 'wrong' },
  { authorization: 'Bearer svc_wrong' },
  { authorization: '' },
]

export default exchange({
  rule: 'lets everybody do everything while authentication is off, whatever credential is sent',
  source: 'decisions.md 1, scopes: authentication switched off holds all',
  steps: CREDENTIALS.map(headers => ({
    request: { ...get('/api/v1/status'), headers },
    expect: ok(),
  })),
})
