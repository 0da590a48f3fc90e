import { hash, randomBytes } from 'node:crypto'
import { type CallContext, codeOf, type Log, withTimeout } from '@svc/core'
import type { Counts, Json, Peers, Space, Store } from '@svc/core/contracts'
import { credentialsIn, networkOf } from '@svc/plugin-kit'
import { changeRecord, type StoredRecord } from '@svc/storage-kit/records'
import { LRUCache } from 'lru-cache'
import type { RequestState } from './context.ts'
import type { CredentialHeaders, VerifiedHolder } from './schemes.ts'
import { tooMany } from './errors.ts'

/** Refused credentials that an address can have in a minute. */
const GUESSES = 10
const MINUTE = 60_000
const GUESSERS = 10_000
/** Peer message topic: an address has reached the limit. */
const TOPIC = 'http.guesses'
/** Maximum wait for the other workers to receive that message. */
const BROADCAST_MS = 1_000

/**
 * Limits credential guessing. Beyond the limit, the server checks credentials from an address only if they were recently valid from that address. So further
 * guesses reveal nothing, even if they are right, and a client with a valid credential at the same address keeps working.
 */
export interface Guesses {
  /** Runs once before the server opens. */
  prepare(callContext: CallContext): Promise<void>
  /**
   * Runs `check` unless the address has reached the limit, and counts refusals. The number of concurrent checks of unknown credentials never exceeds the number of
   * refusals that are left. Throws RATE_LIMITED and errors of `check`.
   */
  guard(state: RequestState, check: () => Promise<VerifiedHolder | undefined>): Promise<VerifiedHolder | undefined>
  /** Handles a message of another worker: for a tap of `Peers.hooks.message`. */
  readonly onPeerMessage: (message: { readonly topic: string; readonly message: Json }) => void
}

interface GuessesOptions {
  readonly counts: Counts | undefined
  readonly peers: Pick<Peers, 'broadcast'> | undefined
  readonly headers: Pick<CredentialHeaders, 'read'>
  readonly seen: SeenGood
  readonly lasting: CallContext
}

export function createGuesses({ counts, peers, headers, seen, lasting }: GuessesOptions): Guesses {
  const refused = createWindowCounter(MINUTE, GUESSERS)
  const blocked = createBlocked()
  const checking = createChecking()

  /** Counts a refused credential. Returns the seconds to wait if concurrent checks have already reached the limit. */
  const count = async (network: string, callContext: CallContext): Promise<number | undefined> => {
    const here = refused.add(network)
    const counted = await counts?.count(`guess ${network}`, [{ ms: MINUTE, limit: GUESSES }], callContext).catch(() => undefined)
    const [window = { count: 0, leftMs: 0 }] = counted?.windows ?? []
    if (here < GUESSES && window.count < GUESSES) return undefined
    const leftMs = Math.max(window.leftMs, here < GUESSES ? 0 : refused.secondsLeft(network) * 1_000)
    const isFirst = waitFor(network) === undefined || here === GUESSES
    blocked.add(network, leftMs)
    if (isFirst)
      await withTimeout(BROADCAST_MS, () => peers?.broadcast(TOPIC, { network, left_ms: leftMs }, lasting)).catch(() => {})
    return here > GUESSES || counted?.counted === false ? waitFor(network) : undefined
  }
  /** Seconds until unknown credentials can be checked again; `undefined` if they can be checked now. */
  const waitFor = (network: string): number | undefined =>
    blocked.seconds(network) ?? (refused.count(network) >= GUESSES ? refused.secondsLeft(network) : undefined)
  /** Resolves when an unknown credential can be checked. */
  const enter = async (network: string, digest: string, state: RequestState): Promise<void> => {
    for (;;) {
      const wait = waitFor(network)
      if (wait !== undefined) {
        if (await seen.isShared(digest, state.callContext)) return checking.enter(network)
        throw tooMany(GUESSES, MINUTE / 1_000, wait, 'invalid credentials')
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
      const digest = seen.digestOf(network, withoutNames(credentials))
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
        throw wait === undefined ? error : tooMany(GUESSES, MINUTE / 1_000, wait, 'invalid credentials')
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

type Credentials = readonly (readonly [name: string, value: string])[]

/** The same credentials, whichever of the common headers carries each: a key is one key in all of them. */
function withoutNames(credentials: Credentials): Credentials {
  const values = credentialsIn(Object.fromEntries(credentials))
  const others = credentials.filter(([name, value]) => credentialsIn({ [name]: value }).length === 0)
  return [...values.map(value => ['', value] as const), ...others]
}

/**
 * A cache of at most `most` entries. `max` of lru-cache would allocate them all at startup; `maxSize` grows with the content.
 * Dropping an entry is safe, although many addresses can cause it: the store has the counts and the valid credentials.
 */
const createBounded = <T extends object | number>(most: number) =>
  new LRUCache<string, T>({ maxSize: most, sizeCalculation: () => 1 })

/** Networks that have reached the limit, and until when. Drops the least recently used entry when full. */
function createBlocked() {
  const ends = createBounded<number>(GUESSERS)
  return {
    add(network: string, leftMs: number) {
      const end = Math.max(ends.get(network) ?? 0, performance.now() + Math.min(leftMs, MINUTE))
      ends.set(network, end)
    },
    /** Seconds to wait; `undefined` if the network is not blocked. */
    seconds(network: string): number | undefined {
      const left = (ends.get(network) ?? 0) - performance.now()
      if (left > 0) return Math.ceil(left / 1_000)
      ends.delete(network)
      return undefined
    },
  }
}

/** Counts the running checks of unknown credentials, by network. */
function createChecking() {
  const open = new Map<string, { count: number; waiting: (() => void)[] }>()
  return {
    count: (network: string) => open.get(network)?.count ?? 0,
    enter(network: string) {
      const found = open.get(network) ?? { count: 0, waiting: [] }
      found.count++
      open.set(network, found)
    },
    leave(network: string) {
      const found = open.get(network)
      if (!found) return
      if (--found.count === 0) open.delete(network)
      for (const go of found.waiting.splice(0)) go()
    },
    /** Resolves when one of the running checks ends. */
    left: (network: string) => new Promise<void>(resolve => void (open.get(network)?.waiting.push(resolve) ?? resolve())),
  }
}

/** Counts in fixed windows that begin with the first count of a key. Drops the least recently used window when full. */
interface WindowCounter {
  /** Adds one and returns the count in the window. */
  add(key: string): number
  /** Returns the count in the window. */
  count(key: string): number
  /** Returns the seconds until the window of this key ends, rounded up. */
  secondsLeft(key: string): number
}

interface Window {
  count: number
  readonly ends: number
}

function createWindowCounter(windowMs: number, most: number, now: () => number = () => performance.now()): WindowCounter {
  const windows = createBounded<Window>(most)
  const begin = (key: string, at: number) => {
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

/** Time for which a valid credential counts as recently valid. */
const COUNTS_MS = 600_000
/** Minimum interval between two store writes for the same credential. */
const NOTED_MS = 60_000
/** Maximum credentials in memory. */
const MOST = 10_000
/** Maximum expired records that one write deletes. */
const SWEPT = 100

const SEEN = 'http_seen_good'
const SECRET = 'http_seen_secret'
const SPACE: Space = { name: 'http_seen_good', version: 1, collections: { [SEEN]: { indexes: { at: ['at'] } }, [SECRET]: {} } }

/** Remembers recently valid credentials by network, for all workers and servers that share the store. */
interface SeenGood {
  /** Opens its space in the store. Without a working store, each worker remembers only the credentials that it has checked itself. */
  prepare(callContext: CallContext): Promise<void>
  /** Returns a keyed digest of network and credentials, which does not reveal them. */
  digestOf(network: string, credentials: Credentials): string
  /** Whether this worker remembers the digest. */
  isKnown(digest: string): boolean
  /** Whether the store has the digest; false if the store does not answer. */
  isShared(digest: string, callContext: CallContext): Promise<boolean>
  note(digest: string): void
  /** Removes a digest whose credential was refused. */
  forget(digest: string): void
}

interface SeenGoodOptions {
  readonly store: Store | undefined
  readonly log: Pick<Log, 'warn' | 'debug'>
  /** The context for work outside a request. */
  readonly lasting: CallContext
}

export function createSeenGood({ store, log, lasting }: SeenGoodOptions): SeenGood {
  const known = createBounded<{ at: number; notedAt: number }>(MOST)
  let secret = randomBytes(32).toString('base64')
  let shared: Store | undefined

  const share = (digest: string) => {
    if (shared)
      write(shared, digest, lasting).catch((err: unknown) => log.debug({ err }, 'failed to store that a credential was valid'))
  }
  return {
    async prepare(callContext) {
      if (!store) return
      try {
        await store.open(SPACE, callContext)
        secret = await secretIn(store, callContext)
        shared = store
      } catch (err) {
        log.warn({ err }, 'the store failed; workers cannot share the list of recently valid credentials')
      }
    },
    digestOf: (network, credentials) =>
      hash('sha256', JSON.stringify([secret, network, ...credentials.toSorted(byName)]), 'base64url'),
    isKnown(digest) {
      const found = known.get(digest)
      return found !== undefined && performance.now() - found.at < COUNTS_MS
    },
    async isShared(digest, callContext) {
      const record = await shared?.get(SEEN, digest, callContext).catch(() => undefined)
      const { at } = Object(record?.value) as { at?: unknown }
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
      known.set(digest, { at, notedAt: at })
      share(digest)
    },
    forget: digest => void known.delete(digest),
  }
}

const byName = ([a]: readonly [string, string], [b]: readonly [string, string]) => (a < b ? -1 : 1)

/** Returns the key of the digests. The first worker creates it. */
async function secretIn(store: Store, ctx: CallContext): Promise<string> {
  const create = ({ value }: StoredRecord) => (typeof value === 'string' ? undefined : randomBytes(32).toString('base64'))
  const { value } = await changeRecord(store, { collection: SECRET, key: 'digest' }, create, ctx)
  return value as string
}

/** Stores a digest and deletes expired ones. */
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
