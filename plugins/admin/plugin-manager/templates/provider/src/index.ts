import { definePlugin } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { CONFIG, createSampleWord } from './provider.ts'

/** svc calls `setup` once for each entry of `providers` with this `type`. */
export default definePlugin({
  instances: 'providers',
  type: 'sample-word',
  config: CONFIG,
  setup(scope) {
    scope.add(Providers, scope.instance ?? 'sample-word', createSampleWord(scope.config))
  },
})
