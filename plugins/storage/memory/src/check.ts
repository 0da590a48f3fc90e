import { messageOf } from '@svc/core'
import type { Check, Store } from '@svc/core/contracts'

/** Says in `/health` that the store is there, and that it does not last. */
export function createCheck(store: Pick<Store, 'probe'>): Check {
  return {
    async probe(ctx) {
      try {
        return { status: 'healthy', detail: { ...(await store.probe(ctx)) } }
      } catch (error) {
        return { status: 'unhealthy', reason: messageOf(error) }
      }
    },
  }
}
