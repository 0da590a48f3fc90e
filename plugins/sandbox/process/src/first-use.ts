import type { ProcessSandbox } from '@svc/core/contracts'
import type { SandboxOptions } from './sandbox.ts'

/** Creates the sandbox, and loads its code at the first call: most servers never use it, and it would cost a tenth of their start. */
export function createProcessSandbox(options: SandboxOptions): ProcessSandbox & AsyncDisposable {
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
