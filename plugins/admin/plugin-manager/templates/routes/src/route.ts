import type { Route } from '@svc/core/contracts'

/** svc checks the query against its schema before `handle`. With authentication, callers need the scope. */
//js: /** @type {import('@svc/core/contracts').Route} */
export const sampleWord: Route = {
  method: 'GET',
  path: '/sample-word',
  summary: 'Says hello',
  scope: 'read',
  query: {
    type: 'object',
    properties: { name: { type: 'string', maxLength: 100, description: 'Name to greet.' } },
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
