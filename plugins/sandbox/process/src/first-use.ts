import type { ProcessSandbox } from '@svc/core/contracts'
import type { SandboxOptions } from './sandbox.ts'

/** The sandbox, whose code is loaded when it is first asked: most servers never are, and it would be a tenth of their start. */
export function createProcessSandbox(options: SandboxOptions): ProcessSandbox & AsyncDisposable {
  let loaded: Promise<ProcessSandbox & AsyncDisposable> | undefined
  const sandbox = () => (loaded ??= import('./sandbox.ts').then(({ createSandbox }) => createSandbox(options)))
  return {
    wrap: async (request, use) => (await sandbox()).wrap(request, use),
    release: async (id, use) => (await sandbox()).release(id, use),
    probe: async use => (await sandbox()).probe(use),
    async [Symbol.asyncDispose]() {
      await (await loaded)?.[Symbol.asyncDispose]()
    },
  }
}
