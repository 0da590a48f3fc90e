import { svcError } from '@svc/core'
import { openSpace, timelyId } from '@svc/storage-kit'

/** @typedef {import('@svc/core').CallContext} CallContext */
/** @typedef {import('@svc/core/contracts').Store} Store */
/** @typedef {import('@svc/core/contracts').Json} Json */
/** @typedef {import('./senders.js').HookEvent} HookEvent */
/** @typedef {{ event: string, source: string, kind: string, received_at: number, body: Json }} StoredEvent */
/** @typedef {{ source?: string, limit: number, cursor?: string }} EventQuery */
/** @typedef {{ events: readonly StoredEvent[], next?: string }} EventPage */

const SPACE = {
  name: 'hooks_in',
  version: 1,
  collections: {
    hook_events: { indexes: { by_source: ['source'] } }, // keys sort by time
    hook_ids: {}, // `<source>/<id of the sender>`
    hook_proofs: {}, // `<source>/<what the signature covers>`
  },
}

/**
 * Keeps each event once, in the store of svc.
 *
 * @typedef {{ add(source: string, event: HookEvent, ctx: CallContext): Promise<boolean>, list(query: EventQuery, ctx: CallContext): Promise<EventPage> }} Inbox
 */

/** @type {(store: Store, ctx: CallContext) => Promise<Inbox>} */
export async function openInbox(store, ctx) {
  await openSpace(store, SPACE, {}, ctx)
  return {
    // All or nothing: when this returns, the event is durable.
    async add(source, { id, kind, proof, body }, call) {
      const key = timelyId()
      const value = { event: id, source, kind, received_at: Date.now(), body }
      try {
        await store.batch(
          [
            { op: 'put', collection: 'hook_ids', key: `${source}/${id}`, value: key, ifVersion: 0 },
            { op: 'put', collection: 'hook_proofs', key: `${source}/${proof}`, value: key, ifVersion: 0 },
            { op: 'put', collection: 'hook_events', key, value },
          ],
          {},
          call
        )
        return true
      } catch (error) {
        const { code, details } = /** @type {{ code?: string, details?: { op?: number } }} */ (error)
        if (code !== 'STORE_CONFLICT') throw error
        if (details?.op === 0) return false
        throw svcError('AUTHENTICATION_FAILED', 'this body was received before, under another id')
      }
    },
    async list({ source, limit, cursor }, call) {
      const range = source === undefined ? {} : { index: 'by_source', equals: [source] }
      const { records, next } = await store.range('hook_events', { ...range, reverse: true, limit, ...(cursor && { cursor }) }, call)
      return { events: records.map(({ value }) => /** @type {StoredEvent} */ (value)), ...(next && { next }) }
    },
  }
}
