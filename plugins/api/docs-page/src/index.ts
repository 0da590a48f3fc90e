import { definePlugin } from '@svc/core'
import { Mounts } from '@svc/core/contracts'
import { createDocsPage } from './docs-page.ts'

/** `GET /docs`: interactive API documentation that needs no other server. */
export default definePlugin({
  setup(scope) {
    scope.add(Mounts, 'docs', createDocsPage())
  },
})
