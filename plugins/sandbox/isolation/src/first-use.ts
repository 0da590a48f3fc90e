import type { Isolation } from '@svc/core/contracts'
import type { PolicyOptions } from './policy.ts'

/** The policy, whose code is loaded when the first plugin asks: most servers have none that is isolated. */
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
    prepare: async (request, use) => (await policy()).prepare(request, use),
    release: async (id, use) => (await policy()).release(id, use),
    refused: async (id, what, use) => (await policy()).refused(id, what, use),
    look: async (id, pid, use) => (await policy()).look(id, pid, use),
    quarantine: async (who, use) => (await policy()).quarantine(who, use),
    async *quarantined(who, use) {
      yield* (await policy()).quarantined(who, use)
    },
    async [Symbol.asyncDispose]() {
      await (await loaded)?.[Symbol.asyncDispose]()
    },
  }
}
