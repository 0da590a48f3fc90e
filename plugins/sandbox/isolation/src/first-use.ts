import type { Isolation } from '@svc/core/contracts'
import type { PolicyOptions } from './policy.ts'

/** Creates the policy, and loads its code at the first call: most servers have no isolated plugin. */
export function createFirstUse({
  onFirst,
  ...options
}: PolicyOptions & { readonly onFirst: () => void }): Isolation & AsyncDisposable {
  let loaded: Promise<Isolation & AsyncDisposable> | undefined
  const policy = () => {
    if (!loaded) onFirst()
    return (loaded ??= import('./policy.ts').then(({ createPolicy }) => createPolicy(options)))
  }
  return {
    prepare: async (request, ctx) => (await policy()).prepare(request, ctx),
    release: async (id, ctx) => (await policy()).release(id, ctx),
    refused: async (id, what, ctx) => (await policy()).refused(id, what, ctx),
    look: async (id, pid, ctx) => (await policy()).look(id, pid, ctx),
    quarantine: async (who, ctx) => (await policy()).quarantine(who, ctx),
    async *quarantined(who, ctx) {
      yield* (await policy()).quarantined(who, ctx)
    },
    async [Symbol.asyncDispose]() {
      await (await loaded)?.[Symbol.asyncDispose]()
    },
  }
}
