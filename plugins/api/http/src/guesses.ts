import { hash, randomBytes } from 'node:crypto'
import { type CallContext, codeOf, type Log, withTimeout } from '@svc/core'
import type { Json, Peers, Space, Store } from '@svc/core/contracts'
import { networkOf } from '@svc/plugin-kit'
import type { RequestState } from './context.ts'
import type { CredentialHeaders, Holder } from './schemes.ts'
import { tooMany } from './errors.ts'

/** So many refused credentials a minute has an address. */
const GUESSES = 10
const MINUTE = 60_000
const GUESSERS = 10_000
/** The topic by which a worker tells the others that an address has guessed enough. */
const TOPIC = 'http.guesses'
/** So long an answer waits until the other workers know. */
const TELL_MS = 1_000

/**
 * Slows down who guesses: past the limit, credentials from an address are checked only if they were seen good from there lately. So a guess beyond the limit
 * teaches nothing, not even one that is right, and who works with a good credential at the same address goes on.
 */
export interface Guesses {
  /** Before the server opens. */
  prepare(callContext: CallContext): Promise<void>
  /**
   * Runs the check of the credentials of a request, if it may run; counts what it refuses. Of credentials that were not seen good, no more are checked at a
   * time than may still be refused. Throws RATE_LIMITED, and what `check` throws.
   */
  guard(state: RequestState, check: () => Promise<Holder | undefined>): Promise<Holder | undefined>
  /** Takes a message of another worker: for a tap of `Peers.hooks.message`. */
  readonly onPeerMessage: (message: { readonly topic: string; readonly message: Json }) => void
}

export interface GuessesParts {
  readonly store: Pick<Store, 'count'> | undefined
  readonly peers: Pick<Peers, 'broadcast'> | undefined
  readonly headers: Pick<CredentialHeaders, 'read'>
  readonly seen: SeenGood
  readonly lasting: CallContext
}

export function createGuesses({ store, peers, headers, seen, lasting }: GuessesParts): Guesses {
  const refused = createWindowCounter(MINUTE, GUESSERS)
  const blocked = createBlocked()
  const checking = createChecking()

  /** Counts a refused one; answers the whole seconds to wait where others, checked at the same time, have reached the limit before. */
  const count = async (network: string, callContext: CallContext): Promise<number | undefined> => {
    const here = refused.add(network)
    const counted = await store?.count(`guess ${network}`, [{ ms: MINUTE, limit: GUESSES }], callContext).catch(() => undefined)
    const [window = { count: 0, endsAt: 0 }] = counted?.windows ?? []
    if (here < GUESSES && window.count < GUESSES) return undefined
    const leftMs = Math.max(window.endsAt - Date.now(), here < GUESSES ? 0 : refused.secondsLeft(network) * 1_000)
    const isFirst = waitFor(network) === undefined || here === GUESSES
    blocked.add(network, leftMs)
    if (isFirst) await withTimeout(TELL_MS, () => peers?.broadcast(TOPIC, { network, left_ms: leftMs }, lasting)).catch(() => {})
    return here > GUESSES || counted?.counted === false ? waitFor(network) : undefined
  }
  /** Whole seconds until credentials that are not known may be checked again; `undefined` where they may now. */
  const waitFor = (network: string): number | undefined =>
    blocked.seconds(network) ?? (refused.count(network) >= GUESSES ? refused.secondsLeft(network) : undefined)
  /** Resolves once credentials that are not known here may be checked. */
  const enter = async (network: string, digest: string, state: RequestState): Promise<void> => {
    for (;;) {
      const wait = waitFor(network)
      if (wait !== undefined) {
        if (await seen.isShared(digest, state.callContext)) return checking.enter(network)
        throw tooMany(GUESSES, MINUTE / 1_000, wait)
      }
      if (refused.count(network) + checking.count(network) < GUESSES || seen.isKnown(digest)) return checking.enter(network)
      await checking.left(network)
      state.ending.signal.throwIfAborted()
    }
  }
  return {
    prepare: callContext => seen.prepare(callContext),
    async guard(state, check) {
      const credentials = headers.read(state.credentials)
      if (credentials.length === 0) return check()
      const network = networkOf(state.address)
      const digest = seen.digestOf(network, credentials)
      const isNew = !seen.isKnown(digest)
      if (isNew) await enter(network, digest, state)
      try {
        const holder = await check()
        if (holder) seen.note(digest)
        return holder
      } catch (error) {
        if (codeOf(error) !== 'AUTHENTICATION_FAILED') throw error
        seen.forget(digest)
        const wait = await count(network, state.callContext)
        throw wait === undefined ? error : tooMany(GUESSES, MINUTE / 1_000, wait)
      } finally {
        if (isNew) checking.leave(network)
      }
    },
    onPeerMessage({ topic, message }) {
      if (topic !== TOPIC) return
      const { network, left_ms: leftMs } = Object(message) as { network?: unknown; left_ms?: unknown }
      blocked.add(String(network), Number(leftMs))
    },
  }
}

/** Networks that have guessed enough, and for how long; where room is short, the first gives way. */
function createBlocked() {
  const ends = new Map<string, number>()
  return {
    add(network: string, leftMs: number) {
      const end = Math.max(ends.get(network) ?? 0, performance.now() + Math.min(leftMs, MINUTE))
      ends.delete(network)
      if (ends.size >= GUESSERS) ends.delete(ends.keys().next().value ?? '')
      ends.set(network, end)
    },
    /** Whole seconds to wait; `undefined` where it is not blocked. */
    seconds(network: string): number | undefined {
      const left = (ends.get(network) ?? 0) - performance.now()
      if (left > 0) return Math.ceil(left / 1_000)
      ends.delete(network)
      return undefined
    },
  }
}

/** How many unknown credentials of a network are being checked. */
function createChecking() {
  const open = new Map<string, { count: number; waiting: (() => void)[] }>()
  return {
    count: (network: string) => open.get(network)?.count ?? 0,
    enter(network: string) {
      const one = open.get(network) ?? { count: 0, waiting: [] }
      one.count++
      open.set(network, one)
    },
    leave(network: string) {
      const one = open.get(network)
      if (!one) return
      if (--one.count === 0) open.delete(network)
      for (const go of one.waiting.splice(0)) go()
    },
    /** Resolves when one of them has been checked. */
    left: (network: string) => new Promise<void>(resolve => void (open.get(network)?.waiting.push(resolve) ?? resolve())),
  }
}

/** Counts in fixed windows that begin with the first count, for a bounded number of keys: where room is short, the oldest window gives way. */
interface WindowCounter {
  /** Counts one more; answers the count in the window. */
  add(key: string): number
  /** The count in the window as it stands. */
  count(key: string): number
  /** Whole seconds until the window of this key ends. */
  secondsLeft(key: string): number
}

interface Window {
  count: number
  readonly ends: number
}

function createWindowCounter(windowMs: number, most: number, now: () => number = () => performance.now()): WindowCounter {
  const windows = new Map<string, Window>()
  const begin = (key: string, at: number) => {
    windows.delete(key) // a window that begins anew is the youngest
    if (windows.size >= most) windows.delete(windows.keys().next().value!)
    windows.set(key, { count: 1, ends: at + windowMs })
    return 1
  }
  return {
    add(key) {
      const at = now()
      const open = windows.get(key)
      return open && open.ends > at ? ++open.count : begin(key, at)
    },
    count(key) {
      const open = windows.get(key)
      return open && open.ends > now() ? open.count : 0
    },
    secondsLeft(key) {
      const open = windows.get(key)
      return open ? Math.max(1, Math.ceil((open.ends - now()) / 1000)) : 1
    },
  }
}

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
interface SeenGood {
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

interface SeenGoodParts {
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
