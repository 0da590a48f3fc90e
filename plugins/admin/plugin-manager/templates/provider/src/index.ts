import { definePlugin } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { CONFIG, createSampleWord } from './provider.ts'

/** Set up once for each entry of `providers` whose `type` is this one. */
export default definePlugin({
  instances: 'providers',
  type: 'sample-word',
  config: CONFIG,
  setup(scope) {
    scope.add(Providers, scope.instance ?? 'sample-word', createSampleWord(scope.config))
  },
})
