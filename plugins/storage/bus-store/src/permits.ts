import { codeOf, type CallContext } from '@svc/core'
import type { Json, Store } from '@svc/core/contracts'
import { PERMITS } from './space.ts'

type Holders = { readonly [worker: string]: number }

/** Permits of the cluster: one record for each name, with the number of permits of each worker. */
export interface Permits {
  acquire(name: string, limit: number, ctx: CallContext): Promise<boolean>
  release(name: string, ctx: CallContext): Promise<void>
  /** Frees all permits of a worker. */
  free(worker: string, ctx: CallContext): Promise<void>
}

const PAGE = 1_000

export function createPermits(store: Store, self: string): Permits {
  /** Changes the holders of one name, and retries after concurrent changes. `change` returns undefined to change nothing. */
  const change = async (name: string, next: (holders: Holders) => Holders | undefined, ctx: CallContext): Promise<boolean> => {
    for (;;) {
      const found = await store.get(PERMITS, name, ctx)
      const holders = next((found?.value ?? {}) as Holders)
      if (!holders) return false
      const ifVersion = found?.version ?? 0
      try {
        await store.batch([{ op: 'put', collection: PERMITS, key: name, value: holders as Json, ifVersion }], {}, ctx)
        return true
      } catch (error) {
        if (codeOf(error) !== 'STORE_CONFLICT') throw error
      }
    }
  }
  const without = (holders: Holders, worker: string, count: number): Holders | undefined => {
    const { [worker]: held = 0, ...rest } = holders
    if (held === 0) return undefined
    return held > count ? { ...rest, [worker]: held - count } : rest
  }
  return {
    acquire: (name, limit, ctx) =>
      change(
        name,
        holders => {
          const sum = Object.values(holders).reduce((total, held) => total + held, 0)
          return sum < limit ? { ...holders, [self]: (holders[self] ?? 0) + 1 } : undefined
        },
        ctx
      ),
    async release(name, ctx) {
      await change(name, holders => without(holders, self, 1), ctx)
    },
    async free(worker, ctx) {
      for (let cursor: string | undefined; ; ) {
        const page = await store.range(PERMITS, { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }, ctx)
        const held = page.records.filter(({ value }) => Object.hasOwn(value as Holders, worker))
        await Promise.all(held.map(({ key }) => change(key, holders => without(holders, worker, Number.POSITIVE_INFINITY), ctx)))
        cursor = page.next
        if (cursor === undefined) return
      }
    },
  }
}
