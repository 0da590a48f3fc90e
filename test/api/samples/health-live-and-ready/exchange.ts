import { exchange, get, ok } from '../../exchange.ts'

export default exchange({
  rule: 'answers whether it lives and whether it is ready',
  source: 'decisions.md 1, health: extra GET /health/live, GET /health/ready',
  steps: [
    { request: get('/health/live'), expect: ok({ status: 'alive' }) },
    { request: get('/health/ready'), expect: ok({ status: 'ready' }) },
  ],
})
