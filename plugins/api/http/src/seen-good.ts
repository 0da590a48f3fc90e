import { hash, randomBytes } from 'node:crypto'
import { codeOf, type Log, type CallContext } from '@svc/core'
import type { Space, Store } from '@svc/core/contracts'

/** So long a credential that was good counts as seen good. */
const COUNTS_MS = 600_000
/** So often the store notes that it was. */
const NOTED_MS = 60_000
/** Credentials kept in mind; the one noted longest ago goes first. */
const MOST = 10_000
/** Old records that one write clears away. */
const SWEPT = 100

const SEEN = 'http_seen_good'
const SECRET = 'http_seen_secret'
const SPACE: Space = { name: 'http_seen_good', version: 1, collections: { [SEEN]: { indexes: { at: ['at'] } }, [SECRET]: {} } }

/** Which credentials were good lately, by the network they came from: for all workers and all servers that share the store. */
export interface SeenGood {
  /** Makes its space in the store; without a store, or where it fails, each worker knows what it has seen itself. */
  prepare(callContext: CallContext): Promise<void>
  /** What stands for credentials from one network: a keyed digest, nothing of them can be read from it. */
  digestOf(network: string, credentials: readonly (readonly [name: string, value: string])[]): string
  /** Whether this worker has seen it. */
  isKnown(digest: string): boolean
  /** Whether another worker has; false where the store cannot tell. */
  isShared(digest: string, callContext: CallContext): Promise<boolean>
  note(digest: string): void
  /** It is good no longer. */
  forget(digest: string): void
}

export interface SeenGoodParts {
  readonly store: Store | undefined
  readonly log: Pick<Log, 'warn' | 'debug'>
  /** The circumstances of work that no request waits for. */
  readonly lasting: CallContext
}

export function createSeenGood({ store, log, lasting }: SeenGoodParts): SeenGood {
  const known = new Map<string, { at: number; notedAt: number }>()
  let secret = randomBytes(32).toString('base64')
  let shared: Store | undefined

  const share = (digest: string) => {
    if (shared) write(shared, digest, lasting).catch((err: unknown) => log.debug({ err }, 'a good credential could not be noted'))
  }
  return {
    async prepare(callContext) {
      if (!store) return
      try {
        await store.open(SPACE, callContext)
        secret = await secretIn(store, callContext)
        shared = store
      } catch (err) {
        log.warn({ err }, 'workers do not share which credentials were good: the store cannot keep it')
      }
    },
    digestOf: (network, credentials) =>
      hash('sha256', JSON.stringify([secret, network, ...credentials.toSorted(byName)]), 'base64url'),
    isKnown(digest) {
      const one = known.get(digest)
      return one !== undefined && performance.now() - one.at < COUNTS_MS
    },
    async isShared(digest, callContext) {
      const found = await shared?.get(SEEN, digest, callContext).catch(() => undefined)
      const { at } = Object(found?.value) as { at?: unknown }
      const age = Date.now() - Number(at)
      return age >= 0 && age < COUNTS_MS
    },
    note(digest) {
      const at = performance.now()
      const before = known.get(digest)
      if (before && at - before.notedAt < NOTED_MS) {
        before.at = at
        return
      }
      known.delete(digest)
      if (known.size >= MOST) known.delete(known.keys().next().value ?? '')
      known.set(digest, { at, notedAt: at })
      share(digest)
    },
    forget: digest => void known.delete(digest),
  }
}

const byName = ([a]: readonly [string, string], [b]: readonly [string, string]) => (a < b ? -1 : 1)

/** The key of the digests: the first worker makes it. */
async function secretIn(store: Store, callContext: CallContext): Promise<string> {
  const key = 'digest'
  const found = await store.get(SECRET, key, callContext)
  if (typeof found?.value === 'string') return found.value
  const made = randomBytes(32).toString('base64')
  try {
    await store.batch([{ op: 'put', collection: SECRET, key, value: made, ifVersion: 0 }], {}, callContext)
    return made
  } catch (error) {
    if (codeOf(error) !== 'STORE_CONFLICT') throw error
    return secretIn(store, callContext)
  }
}

/** Notes it, and clears away what no longer counts. */
async function write(store: Store, digest: string, callContext: CallContext): Promise<void> {
  const now = Date.now()
  const { records } = await store.range(SEEN, { index: 'at', to: now - COUNTS_MS, limit: SWEPT }, callContext)
  await store.batch(
    [
      ...records.map(({ key }) => ({ op: 'delete' as const, collection: SEEN, key })),
      { op: 'put', collection: SEEN, key: digest, value: { at: now } },
    ],
    {},
    callContext
  )
}
