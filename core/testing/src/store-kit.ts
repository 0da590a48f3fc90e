import { type KitCase, skipSelf } from './kit-case.ts'
import { batchCases } from './store-kit/batches.ts'
import { leaseCases } from './store-kit/leases.ts'
import { logCases } from './store-kit/logs.ts'
import { rangeCases } from './store-kit/ranges.ts'
import { type OpenStore, rigged } from './store-kit/rig.ts'
import { spaceCases } from './store-kit/spaces.ts'
import { valueCases } from './store-kit/values.ts'
import { watchCases } from './store-kit/watches.ts'

export type { OpenStore, StoreUnderTest } from './store-kit/rig.ts'

/**
 * Cases for every store: `for (const one of storeKit(open)) it(one.title, one.run)`. `open` returns a new, empty store each
 * time. With `reopen` the kit also tests durability, with `second` shared access, with `cut` lost answers, and with `readOnly` a
 * store that can only read. A case without what it needs skips itself.
 */
export function storeKit(open: OpenStore): KitCase[] {
  const groups = [batchCases, rangeCases, logCases, valueCases, leaseCases, watchCases, spaceCases]
  return groups.flat().map(([title, run]) => ({
    title,
    async run(this: unknown) {
      const result = await rigged(open, run)
      if (result) skipSelf(this, `${result.missing} was not given`)
    },
  }))
}
