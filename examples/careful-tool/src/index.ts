import { definePlugin, schema } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { createSendPostcard, type PostcardsConfig } from './send-postcard.ts'

export default definePlugin({
  section: 'tools.postcards',
  config: schema<PostcardsConfig>({
    type: 'object',
    additionalProperties: false,
    properties: {
      outbox: { type: 'string', minLength: 1, default: 'outbox.txt', description: 'File to write postcards to' },
    },
  }),
  setup(scope) {
    scope.add(Tools, 'send_postcard', createSendPostcard(scope.config))
  },
})
