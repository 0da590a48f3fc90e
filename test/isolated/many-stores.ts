import { definePlugin, type CallContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { createMemoryStore, type MemoryStore } from '../../plugins/storage/memory/src/store.ts'

const LIMITS = { maxRecords: 1_000_000, maxBytes: 256 * 1024 * 1024, evict: true }

/** The store of store-memory as many times as it is asked for, each by the id of the principal that asks: one process for all cases of a kit. */
export default definePlugin({
  provides: Store,
  setup(scope) {
    const stores = new Map<string, MemoryStore>()
    return eachMethod(({ principal: { id } }) => {
      if (!stores.has(id)) stores.set(id, scope.use(createMemoryStore(LIMITS)))
      return stores.get(id)!
    })
  },
})

/** One of its stores, from outside. */
export const storeOf = (all: Store, id: string): Store =>
  eachMethod(
    () => all,
    ctx => ({ ...ctx, principal: { ...ctx.principal, id } })
  )

type Method = (...args: unknown[]) => unknown

/** A store whose every method is that of the one chosen by its last argument. */
function eachMethod(choose: (ctx: CallContext) => Store, asking = (ctx: CallContext): CallContext => ctx): Store {
  const methods = Object.keys(Store.methods).map((name): [string, Method] => [
    name,
    (...args) => {
      const ctx = args.at(-1) as CallContext
      return (choose(ctx)[name as keyof Store] as Method)(...args.slice(0, -1), asking(ctx))
    },
  ])
  return Object.fromEntries(methods) as unknown as Store
}
