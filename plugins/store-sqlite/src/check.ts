import { messageOf, type Use } from '@svc/core'
import type { Check, CheckReport, Store } from '@svc/core/contracts'
import { noAnswer } from './errors.ts'

const LIMIT_MS = 5000

/** Probes the store, but not for ever. Throws STORE_UNAVAILABLE. */
async function probeSoon(store: Pick<Store, 'probe'>, use: Use): Promise<{ kind: string; durable: boolean }> {
  const limit = AbortSignal.timeout(LIMIT_MS)
  try {
    return { ...(await store.probe({ ...use, signal: AbortSignal.any([use.signal, limit]) })) }
  } catch (error) {
    throw error === limit.reason ? noAnswer(LIMIT_MS / 1000) : error
  }
}

/** Says in `/health` whether the store takes and gives; those who ask at once share one probe. */
export function createCheck(store: Pick<Store, 'probe'>): Check {
  let flight: Promise<CheckReport> | undefined
  return {
    probe(use) {
      // Nobody who leaves may end it for the others.
      flight ??= report(store, { ...use, signal: new AbortController().signal }).finally(() => (flight = undefined))
      return flight
    },
  }
}

async function report(store: Pick<Store, 'probe'>, use: Use): Promise<CheckReport> {
  try {
    return { status: 'healthy', detail: await probeSoon(store, use) }
  } catch (error) {
    return { status: 'unhealthy', reason: messageOf(error) }
  }
}
