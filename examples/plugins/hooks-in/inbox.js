import { svcError } from '@svc/core'
import { openSpace, timelyId } from '@svc/storage-kit'

/** @typedef {import('@svc/core').CallContext} CallContext */
/** @typedef {import('@svc/core/contracts').Store} Store */
/** @typedef {import('@svc/core/contracts').Json} Json */
/** @typedef {import('./senders.js').HookEvent} HookEvent */
/** @typedef {{ event: string, source: string, kind: string, received_at: number, body: Json }} StoredEvent */
/** @typedef {StoredEvent & { proof: string }} EventRecord */
/** @typedef {{ source?: string, limit: number, cursor?: string }} EventQuery */
/** @typedef {{ events: readonly StoredEvent[], next?: string }} EventPage */

const SPACE = {
  name: 'hooks_in',
  version: 1,
  collections: {
    hook_events: { indexes: { by_source: ['source'], by_time: ['received_at'] } }, // keys sort by time
    hook_ids: {}, // `<source>/<id of the sender>`
    hook_proofs: {}, // `<source>/<what the signature covers>`
  },
}

const PRUNED_AT_ONCE = 500

/** Keeps each event once, in the store of svc. A method returns when its change is durable. */
export class Inbox {
  /** @type {Store} */
  #store

  /** @param {Store} store */
  constructor(store) {
    this.#store = store
  }

  /** @type {(store: Store, ctx: CallContext) => Promise<Inbox>} */
  static async open(store, ctx) {
    await openSpace(store, SPACE, {}, ctx)
    return new Inbox(store)
  }

  /** Returns false for an event that it already has. @type {(source: string, event: HookEvent, ctx: CallContext) => Promise<boolean>} */
  async add(source, { id, kind, proof, body }, ctx) {
    const key = timelyId()
    const value = { event: id, source, kind, received_at: Date.now(), body, proof }
    try {
      await this.#store.batch(
        [
          { op: 'put', collection: 'hook_ids', key: `${source}/${id}`, value: key, ifVersion: 0 },
          { op: 'put', collection: 'hook_proofs', key: `${source}/${proof}`, value: key, ifVersion: 0 },
          { op: 'put', collection: 'hook_events', key, value },
        ],
        {},
        ctx
      )
      return true
    } catch (error) {
      const { code, details } = /** @type {{ code?: string, details?: { op?: number } }} */ (error)
      if (code !== 'STORE_CONFLICT') throw error
      if (details?.op === 0) return false
      throw svcError('AUTHENTICATION_FAILED', 'this body was received before, under another id')
    }
  }

  /** The newest first. @type {(query: EventQuery, ctx: CallContext) => Promise<EventPage>} */
  async list({ source, limit, cursor }, ctx) {
    const range = source === undefined ? {} : { index: 'by_source', equals: [source] }
    const query = { ...range, reverse: true, limit, ...(cursor && { cursor }) }
    const { records, next } = await this.#store.range('hook_events', query, ctx)
    const events = records.map(({ value }) => {
      const { proof: _, ...event } = /** @type {EventRecord} */ (/** @type {unknown} */ (value))
      return event
    })
    return { events, ...(next && { next }) }
  }

  /** Deletes the events that arrived before a time. Several processes can do it at once. @type {(time: number, ctx: CallContext) => Promise<void>} */
  async prune(time, ctx) {
    const query = { index: 'by_time', to: time, limit: PRUNED_AT_ONCE }
    for (;;) {
      const { records } = await this.#store.range('hook_events', query, ctx)
      if (records.length === 0) return
      const ops = records.flatMap(({ key, value }) => {
        const { source, event, proof } = /** @type {EventRecord} */ (/** @type {unknown} */ (value))
        return [
          /** @type {const} */ ({ op: 'delete', collection: 'hook_ids', key: `${source}/${event}` }),
          /** @type {const} */ ({ op: 'delete', collection: 'hook_proofs', key: `${source}/${proof}` }),
          /** @type {const} */ ({ op: 'delete', collection: 'hook_events', key }),
        ]
      })
      await this.#store.batch(ops, {}, ctx)
    }
  }
}
