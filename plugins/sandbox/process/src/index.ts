import { definePlugin, svcHome } from '@svc/core'
import { ProcessSandbox, ProtectedPaths } from '@svc/core/contracts'
import { createProcessSandbox } from './first-use.ts'

export default definePlugin({
  requires: { protectedPaths: ProtectedPaths },
  provides: ProcessSandbox,
  async setup(scope, { protectedPaths }) {
    return scope.use(
      createProcessSandbox({
        home: svcHome(),
        protectedPaths,
        warn: (facts, message) => scope.log.warn(facts, message),
      })
    )
  },
})
