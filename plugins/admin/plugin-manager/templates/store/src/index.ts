import { definePlugin } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { createSampleWord } from './store.ts'

export default definePlugin({
  provides: Store,
  setup: scope => scope.use(createSampleWord()),
})
