import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'

export default definePlugin({
  setup: scope =>
    void scope.add(Routes, 'hello', {
      method: 'GET',
      path: '/hello',
      summary: 'Says hello',
      handle: async () => ({ body: { hello: 'world' } }),
    }),
})
