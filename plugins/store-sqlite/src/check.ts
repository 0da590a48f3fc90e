import { messageOf } from '@svc/core'
import type { Check, CheckReport, Store } from '@svc/core/contracts'

/** Says in `/health` whether the store takes and gives; those who ask at once share one probe. */
export function createCheck(store: Pick<Store, 'probe'>): Check {
  let flight: Promise<CheckReport> | undefined
  return {
    probe(use) {
      flight ??= report(store, use).finally(() => (flight = undefined))
      return flight
    },
  }
}

async function report(store: Pick<Store, 'probe'>, use: Parameters<Check['probe']>[0]): Promise<CheckReport> {
  try {
    return { status: 'healthy', detail: { ...(await store.probe({ ...use, signal: AbortSignal.timeout(5000) })) } }
  } catch (error) {
    return { status: 'unhealthy', reason: messageOf(error) }
  }
}
