import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'

/** A GET request that fails with status 500. */
export default definePlugin({
  setup(scope) {
    scope.add(Routes, 'broken', {
      method: 'GET',
      path: '/broken',
      summary: 'Fails',
      handle: () => Promise.reject(new Error('broken')),
    })
  },
})
