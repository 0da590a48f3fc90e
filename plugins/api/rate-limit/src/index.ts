import { definePlugin } from '@svc/core'
import { Counts, Limits } from '@svc/core/contracts'
import { rateLimitConfig } from './config.ts'
import { createLimits } from './limits.ts'

export default definePlugin({
  section: 'server.rate_limit',
  config: rateLimitConfig,
  requires: { counts: Counts },
  provides: Limits,
  setup: ({ config }, { counts }) => createLimits({ config, counts }),
})
