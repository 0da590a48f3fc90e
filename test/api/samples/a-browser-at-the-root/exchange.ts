import { exact, exchange, get, refused } from '../../exchange.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'
const accepting = (accept: string, path = '/') => ({ ...get(path), headers: { accept } })
const toPage = { status: 302, headers: { location: '/console', vary: 'Origin, Accept' } }
const record = refused(404, 'NOT_FOUND', exact({ see: ['/docs', '/openapi.json'] }))

export default exchange({
  rule: 'leads a browser from / to the console, which is on; other clients and other paths get the error record',
  source: 'decisions.md 1, extension codes: NOT_FOUND; issue 22, part 6 (n)',
  steps: [
    { request: accepting(BROWSER), expect: toPage },
    { request: { ...accepting(BROWSER), method: 'HEAD' }, expect: { status: 302, headers: { location: '/console' } } },
    ...['*/*', 'application/json', 'application/json, text/html;q=0.5', 'image/png'].map(accept => ({
      request: accepting(accept),
      expect: record,
    })),
    { request: get('/'), expect: record },
    { request: accepting(BROWSER, '/nowhere'), expect: record },
    { request: { ...accepting(BROWSER), method: 'POST' }, expect: record },
  ],
})
