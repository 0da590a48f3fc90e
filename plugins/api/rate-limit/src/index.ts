import { definePlugin } from '@svc/core'
import { Limits, Store } from '@svc/core/contracts'
import { rateLimitConfig } from './config.ts'
import { createLimits } from './limits.ts'

export default definePlugin({
  section: 'server.rate_limit',
  config: rateLimitConfig,
  requires: { store: Store },
  provides: Limits,
  setup: ({ config }, { store }) => createLimits({ config, store }),
})
