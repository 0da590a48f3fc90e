import { definePlugin } from '@svc/core'
import { ProtectedPaths, ScriptSandbox } from '@svc/core/contracts'
import { createGuardedFetch } from '@svc/safe-fetch'
import { createPool } from './pool.ts'
import { createGuestFetch, createRequestHandlers } from './requests.ts'
import { createSandbox } from './sandbox.ts'
import { bytesOf } from '@svc/plugin-kit'
import { problemsOf, quickjsConfig } from './settings.ts'

export default definePlugin({
  section: 'sandbox.quickjs',
  config: quickjsConfig,
  check: async config => problemsOf(config),
  requires: { protectedPaths: ProtectedPaths },
  provides: ScriptSandbox,
  setup(scope, { protectedPaths }) {
    const { workers, timeout, memory_limit: memory, allow } = scope.config
    const bounds = { timeoutMs: timeout * 1000, memoryBytes: bytesOf(memory) }
    const web = scope.use(createGuardedFetch({ allow }))
    const pool = scope.use(createPool(workers, bounds.memoryBytes))
    return createSandbox({ pool, bounds, handlerFor: createRequestHandlers(createGuestFetch(web), protectedPaths) })
  },
})

export type { QuickjsConfig } from './settings.ts'
