import { definePlugin } from '@svc/core'
import { Counts, Limits, Routes } from '@svc/core/contracts'
import { rateLimitConfig } from './config.ts'
import { createLimits, createLimitsRoute } from './limits.ts'

export default definePlugin({
  section: 'server.rate_limit',
  config: rateLimitConfig,
  requires: { counts: Counts },
  provides: Limits,
  setup(scope, { counts }) {
    const { config } = scope
    scope.add(Routes, 'limits', createLimitsRoute({ config, counts }))
    return createLimits({ config, counts })
  },
})
