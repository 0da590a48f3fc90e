import { codeOf, type Log, type CallContext } from '@svc/core'
import type { Json, Peers, Space, Store } from '@svc/core/contracts'
import { follow } from '@svc/storage-kit/follow'

/** What was switched in this server; `null` where nothing was. */
interface SessionState {
  readonly profile: string | null
  readonly override: { readonly provider: string; readonly model: string } | null
  readonly mode: string | null
}

const NOTHING: SessionState = { profile: null, override: null, mode: null }
const COLLECTION = 'sessions'
const SPACE: Space = {
  name: 'selection',
  version: 1,
  collections: { [COLLECTION]: { indexes: { by_changed: ['changed'] }, watched: true } },
}
const KEPT_MS = 400 * 24 * 3600 * 1000

/** The state of this server's session: in memory for reading, in the store for its other workers and for the next one. */
export interface Session {
  readonly now: SessionState
  /** Reads the state from the store after a change by another worker. */
  read(ctx: CallContext): Promise<void>
  /** Changes it for all workers; answers once it is kept and they have taken it. Throws UNAVAILABLE when one did not in time: it is kept nevertheless. */
  change(change: Partial<SessionState>, ctx: CallContext): Promise<void>
}

/** What a session stands on. */
interface SessionParts {
  readonly store: Store
  /** A server's id. */
  readonly key: string
  /** The other workers, which must have taken a change before it is answered. */
  readonly peers: Peers | undefined
  readonly log: Log
}

/** The topic of a change; what changed is read from the store. */
export const CHANGED = 'selection'

/** Takes up the session of a server; follows what other workers change until `lasting.signal` aborts. */
export async function openSession({ store, key, peers, log }: SessionParts, lasting: CallContext): Promise<Session> {
  await store.open(SPACE, lasting)
  await forgetOld(store, lasting)
  let version = 0
  let now = NOTHING
  const take = (value: Json | undefined, of: number) => {
    if (of <= version || value === undefined) return
    version = of
    now = stateOf(value)
  }
  const watch = async (ctx: CallContext) => {
    for await (const change of store.watch(COLLECTION, ctx)) if (change.key === key) take(change.value, change.version)
  }
  // where another file has taken the store's place, what it has is true, even if it is older
  const read = async (ctx: CallContext) => {
    const before = version
    const stored = await store.get(COLLECTION, key, ctx)
    if (version === before) [version, now] = [stored?.version ?? 0, stored ? stateOf(stored.value) : NOTHING]
    else take(stored?.value, stored?.version ?? 0)
  }
  follow({ what: 'switches of other workers', watch, read }, lasting, log).catch((err: unknown) =>
    log.error({ err }, 'switches of other workers are no longer seen')
  )
  await read(lasting)

  const put = async (change: Partial<SessionState>, ctx: CallContext): Promise<void> => {
    const next = { ...now, ...change }
    const value = { ...next, changed: Date.now() }
    const from = version
    try {
      await store.batch([{ op: 'put', collection: COLLECTION, key, value, ifVersion: from }], {}, ctx)
      take(value, from + 1)
    } catch (error) {
      if (codeOf(error) !== 'STORE_CONFLICT') throw error
      await read(ctx)
      await put(change, ctx)
    }
  }
  return {
    get now() {
      return now
    },
    read,
    async change(change, ctx) {
      await put(change, ctx)
      await peers?.broadcast(CHANGED, null, ctx)
    },
  }
}

const stateOf = (value: Json): SessionState => ({ ...NOTHING, ...(value as unknown as SessionState) })

/** Sessions of servers that ended long ago. */
async function forgetOld(store: Store, ctx: CallContext): Promise<void> {
  const { records } = await store.range(COLLECTION, { index: 'by_changed', to: Date.now() - KEPT_MS, limit: 1000 }, ctx)
  if (records.length > 0)
    await store.batch(
      records.map(one => ({ op: 'delete', collection: COLLECTION, key: one.key })),
      {},
      ctx
    )
}
