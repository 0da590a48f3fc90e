import { definePlugin, svcHome } from '@svc/core'
import { ProcessSandbox } from '@svc/core/contracts'
import { createProcessSandbox } from './first-use.ts'

export default definePlugin({
  provides: ProcessSandbox,
  async setup(scope) {
    return scope.use(createProcessSandbox({ home: svcHome() }))
  },
})
