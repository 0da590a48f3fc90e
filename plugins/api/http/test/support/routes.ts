import type { Route } from '@svc/core/contracts'

/** What `say` was asked. */
export const said: unknown[] = []
/** A route with a checked body. */
export const say: Route = {
  method: 'POST',
  path: '/say',
  summary: 'Says it back',
  body: {
    type: 'object',
    required: ['message', 'to'],
    properties: {
      message: { type: 'string', pattern: '\\S', patternHint: 'must not be blank' },
      to: { enum: ['you', 'me'] },
      heat: { type: 'number', minimum: 0, maximum: 1 },
      list: { type: 'array', items: { type: 'string' } },
    },
  },
  handle: async ({ body }) => {
    said.push(body)
    return { body: { said: body } }
  },
}
/** A route with a checked query. */
export const find: Route = {
  method: 'GET',
  path: '/things/:id',
  summary: 'Finds',
  query: { type: 'object', properties: { limit: { type: 'integer', minimum: 1, maximum: 9 }, word: { type: 'string' } } },
  handle: async ({ params, query }) => ({ body: { params, query } }),
}
/** A body that `say` takes. */
export const GOOD = '{"message":"hi","to":"you"}'
