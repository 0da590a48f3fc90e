import { definePlugin } from '@svc/core'
import { Mounts } from '@svc/core/contracts'
import { createDocsPage } from './docs-page.ts'

/** `GET /docs`: the API to read and to try out, without any other server. */
export default definePlugin({
  setup(scope) {
    scope.add(Mounts, 'docs', createDocsPage())
  },
})
