// The tools of mcp-list.js as a plugin of svc.
import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { answer, listed } from './mcp-list.js'

export default definePlugin({
  setup(scope) {
    for (const { name, description, inputSchema } of listed)
      scope.add(Tools, name, {
        description,
        category: 'text',
        effects: [],
        parameters: inputSchema,
        call: async args => answer(args),
      })
  },
})
