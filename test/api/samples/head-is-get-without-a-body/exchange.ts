import { any, exchange, READ_ROUTES } from '../../exchange.ts'

export default exchange({
  rule: 'answers HEAD like GET, without a body',
  source: 'http-api.md "Endpoints": what GET answers; RFC 9110, 9.3.2',
  steps: READ_ROUTES.map(path => ({
    request: { method: 'HEAD', path },
    expect: { status: 200, text: '', headers: { 'x-request-id': any('text') } },
  })),
})
