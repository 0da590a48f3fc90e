import { asSvcError, type CallContext, messageOf } from '@svc/core'
import type { Check, CheckReport, Store, StoreProbe } from '@svc/core/contracts'
import { storeReport } from '@svc/storage-kit'
import { waitedTooLong } from './errors.ts'

const LIMIT_MS = 5000

/** Reports in `/health` whether the store reads and writes. Simultaneous callers share one probe. */
export function createCheck(store: Pick<Store, 'probe'>): Check {
  let flight: Promise<CheckReport> | undefined
  return {
    probe(ctx) {
      // A caller that leaves must not abort it for the others.
      flight ??= report(store, { ...ctx, signal: new AbortController().signal }).finally(() => (flight = undefined))
      return flight
    },
  }
}

async function report(store: Pick<Store, 'probe'>, ctx: CallContext): Promise<CheckReport> {
  try {
    return storeReport(await probeSoon(store, ctx))
  } catch (error) {
    const { hint } = asSvcError(error, 'STORE_UNAVAILABLE')
    return { status: 'unhealthy', reason: messageOf(error), ...(hint === undefined ? {} : { hint }) }
  }
}

/** Probes the store, with a limit. */
async function probeSoon(store: Pick<Store, 'probe'>, ctx: CallContext): Promise<StoreProbe> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(waitedTooLong()), LIMIT_MS)
  const probed = store.probe(ctx)
  probed.catch(() => {}) // it can fail after the limit
  try {
    return await Promise.race([probed, promise])
  } finally {
    clearTimeout(timer)
  }
}
