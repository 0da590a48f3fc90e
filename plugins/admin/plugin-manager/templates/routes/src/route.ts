import type { Route } from '@svc/core/contracts'

/** The query has been checked against its schema when `handle` runs; the scope is what a caller needs where authentication is on. */
//js: /** @type {import('@svc/core/contracts').Route} */
export const sampleWord: Route = {
  method: 'GET',
  path: '/sample-word',
  summary: 'Says hello',
  scope: 'read',
  query: {
    type: 'object',
    properties: { name: { type: 'string', maxLength: 100, description: 'Who is greeted.' } },
  },
  responses: {
    '200': {
      description: 'The greeting',
      schema: { type: 'object', properties: { hello: { type: 'string' } }, required: ['hello'] },
    },
  },
  async handle({ query: { name = 'world' } }, { signal }) {
    signal.throwIfAborted()
    return { body: { hello: name } }
  },
}
