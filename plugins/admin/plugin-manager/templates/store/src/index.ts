import { definePlugin } from '@svc/core'
import { Counts, Store } from '@svc/core/contracts'
import { createSampleWord } from './store.ts'

export default definePlugin({
  provides: Store,
  alsoProvides: [Counts],
  setup: scope => scope.use(createSampleWord()),
})
