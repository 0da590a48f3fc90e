import { exchange, get } from '../../exchange.ts'

export default exchange({
  rule: 'leads a browser from / to /docs, if the console is off',
  source: 'issue 22, part 6 (n)',
  together: 'late',
  config: { plugins: [{ use: '@svc/plugin-console', enabled: false }] },
  steps: [
    { request: { ...get('/'), headers: { accept: 'text/html' } }, expect: { status: 302, headers: { location: '/docs' } } },
    { request: get('/docs'), expect: { status: 200 } },
  ],
})
