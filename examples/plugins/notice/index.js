import { definePlugin, schema } from '@svc/core'
import { Routes } from '@svc/core/contracts'

/** @type {import('@svc/core').Schema<{ text: string }>} */
const config = schema({
  type: 'object',
  additionalProperties: false,
  properties: { text: { type: 'string', default: 'All is well.', description: 'Text of the notice.' } },
})

/** @type {(text: string) => import('@svc/core/contracts').Route} */
const notice = text => ({
  method: 'GET',
  path: '/notice',
  summary: 'Return the notice of the day',
  scope: 'read',
  responses: {
    200: {
      description: 'The notice',
      schema: { type: 'object', properties: { notice: { type: 'string' } }, required: ['notice'] },
    },
  },
  handle: async () => ({ body: { notice: text } }),
})

export default definePlugin({
  section: 'notice',
  config,
  setup(scope) {
    scope.add(Routes, 'notice', notice(scope.config.text))
  },
})
