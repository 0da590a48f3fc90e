import type { Route } from '@svc/core/contracts'

/** The data of the page. The caller is the person at the console. */
//js: /** @type {import('@svc/core/contracts').Route} */
export const sampleWordGreeting: Route = {
  method: 'GET',
  path: '/sample-word/greeting',
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
