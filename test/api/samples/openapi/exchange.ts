import { any, BODY_ROUTES, exchange, get, matching, ok, READ_ROUTES } from '../../exchange.ts'

export default exchange({
  rule: 'describes itself as OpenAPI 3.1 with every route of the service',
  source: 'issue 3, 5: OpenAPI 3.1 at /openapi.json',
  steps: [
    {
      request: get('/openapi.json'),
      expect: ok(
        {
          openapi: matching(/^3\.1\./),
          info: { version: any('text') },
          paths: {
            ...Object.fromEntries(Object.keys(BODY_ROUTES).map(path => [path, { post: { requestBody: any('object') } }])),
            ...Object.fromEntries(
              READ_ROUTES.filter(path => !path.endsWith('conversations')).map(path => [
                path,
                { get: { responses: { 200: any('object') } } },
              ])
            ),
            '/api/v1/conversations/{id}': { get: any('object'), delete: { responses: { 204: any('object') } } },
          },
        },
        { 'content-type': matching(/^application\/json/) }
      ),
    },
  ],
})
