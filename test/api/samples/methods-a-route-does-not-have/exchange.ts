import { any, eachBodyRoute, exchange, matching, READ_ROUTES, refused } from '../../exchange.ts'

const wrong = (method: string, path: string) => ({
  request: { method, path },
  expect: { ...refused(405, 'METHOD_NOT_ALLOWED'), headers: { allow: any('text') } },
})

export default exchange({
  rule: 'answers a method that the path does not have with 405 and those it has',
  source: 'decisions.md 1, extension codes: METHOD_NOT_ALLOWED 405 + Allow',
  steps: [
    ...eachBodyRoute(path =>
      ['PUT', 'PATCH', ...(path.endsWith('conversations') ? [] : ['GET', 'DELETE'])].map(method => wrong(method, path))
    ),
    ...READ_ROUTES.flatMap(path =>
      ['PUT', 'DELETE', ...(path.endsWith('conversations') ? [] : ['POST'])].map(method => wrong(method, path))
    ),
    ...['POST', 'PUT'].map(method => wrong(method, '/api/v1/conversations/x')),
    { request: { method: 'DELETE', path: '/api/v1/chat' }, expect: { status: 405, headers: { allow: matching(/\bPOST\b/) } } },
    {
      request: { method: 'PUT', path: '/api/v1/conversations/x' },
      expect: { status: 405, headers: { allow: matching(/(?=.*\bGET\b)(?=.*\bDELETE\b)/) } },
    },
  ],
})
