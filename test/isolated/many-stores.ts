import { definePlugin, type CallContext, type ServiceToken } from '@svc/core'
import { Counts, Store, TextIndex } from '@svc/core/contracts'
import { createMemoryStore, type MemoryStore } from '../../plugins/storage/memory/src/store.ts'

const LIMITS = { maxRecords: 1_000_000, maxBytes: 256 * 1024 * 1024, evict: true }

/** The store of store-memory as many times as it is asked for, each by the id of the principal that asks: one process for all cases of a kit. */
export default definePlugin({
  provides: Store,
  alsoProvides: [Counts, TextIndex],
  setup(scope) {
    const stores = new Map<string, MemoryStore>()
    return eachMethod<MemoryStore>([Store, Counts, TextIndex], ({ principal: { id } }) => {
      if (!stores.has(id)) stores.set(id, scope.use(createMemoryStore(LIMITS)))
      return stores.get(id)!
    })
  },
})

/** One of its stores, from outside. */
export const storeOf = <T extends object>(token: ServiceToken<T>, all: T, id: string): T =>
  eachMethod<T>(
    [token],
    () => all,
    ctx => ({ ...ctx, principal: { ...ctx.principal, id } })
  )

type Method = (...args: unknown[]) => unknown

/** A store whose every method is that of the one chosen by its last argument. */
function eachMethod<T extends object>(
  tokens: readonly { readonly methods: object }[],
  choose: (ctx: CallContext) => T,
  asking = (ctx: CallContext): CallContext => ctx
): T {
  const names = tokens.flatMap(({ methods }) => Object.keys(methods))
  const methods = names.map((name): [string, Method] => [
    name,
    (...args) => {
      const ctx = args.at(-1) as CallContext
      const chosen = choose(ctx)
      return (Reflect.get(chosen, name) as Method).call(chosen, ...args.slice(0, -1), asking(ctx))
    },
  ])
  return Object.fromEntries(methods) as T
}
