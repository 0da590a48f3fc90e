import { definePlugin, svcHome } from '@svc/core'
import { ProcessSandbox, ProtectedPaths } from '@svc/core/contracts'
import type { ProcessSandboxOptions } from './sandbox.ts'

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

/** Creates the sandbox, and loads its code at the first call: most servers never use it, and it would cost a tenth of their start. */
function createProcessSandbox(options: ProcessSandboxOptions): ProcessSandbox & AsyncDisposable {
  let loaded: Promise<ProcessSandbox & AsyncDisposable> | undefined
  const sandbox = () => (loaded ??= import('./sandbox.ts').then(({ createSandbox }) => createSandbox(options)))
  return {
    wrap: async (request, ctx) => (await sandbox()).wrap(request, ctx),
    release: async (id, ctx) => (await sandbox()).release(id, ctx),
    probe: async ctx => (await sandbox()).probe(ctx),
    async [Symbol.asyncDispose]() {
      await (await loaded)?.[Symbol.asyncDispose]()
    },
  }
}
