import { defineService, type CallContext } from '@svc/core'

/** A plain value as JSON has it; kept as `JSON.stringify` would write it: what is undefined is left out, NaN is null. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined }

/** One record of a collection. `version` is 1 when it is made and grows by one with each put. */
export interface StoreRecord<T = Json> {
  readonly key: string
  readonly version: number
  readonly value: T
}

/** One entry of a log; `seq` begins with 1 and has no holes. */
export interface LogEntry<T = Json> {
  readonly seq: number
  readonly value: T
}

/**
 * An index: the paths (`owner`, `meta.kind`) whose values, in this order, sort its entries; the key comes last and breaks ties.
 * Values are text, numbers, booleans or null; order: null, false, true, numbers, text (by UTF-8 bytes). A record where a path is absent, or holds a list
 * or an object, has null there.
 */
export type IndexPaths = readonly string[]

/** What a plugin keeps: its collections and logs, under one schema version. Names are `[a-z][a-z0-9_]*`, unique over all plugins. */
export interface Space {
  readonly name: string
  /** Schema version of the plugin's data, from 1. */
  readonly version: number
  readonly collections?: { readonly [collection: string]: Collection }
  readonly logs?: readonly string[]
}

/** How a collection is kept. */
export interface Collection {
  readonly indexes?: { readonly [index: string]: IndexPaths }
  /** Whether `watch` tells its changes. */
  readonly watched?: boolean
  /**
   * Whether its records outlive a restore: those of the store that is replaced count, not the backup's of the same key. For what must not come back with an old
   * state, such as a right that was taken back: such a record is marked, never deleted.
   */
  readonly lasting?: boolean
}

/**
 * A change of a batch. Keys, stream ids and lease names are 1 to 1024 characters of well-formed Unicode without U+0000. `ifVersion`: 0 = must not exist, n = must have that version, absent = whatever is there.
 */
export type StoreOp =
  | { readonly op: 'put'; readonly collection: string; readonly key: string; readonly value: Json; readonly ifVersion?: number }
  | { readonly op: 'delete'; readonly collection: string; readonly key: string; readonly ifVersion?: number }
  /** Appends values to the log `log` of the stream `id`. `ifLength`: the number of entries it must have. */
  | {
      readonly op: 'append'
      readonly log: string
      readonly id: string
      readonly values: readonly Json[]
      readonly ifLength?: number
    }
  /** Deletes the whole stream `id` of a log. */
  | { readonly op: 'drop'; readonly log: string; readonly id: string }
  /** Says that a space's data now has this schema version: the last act of a migration. */
  | { readonly op: 'migrated'; readonly space: string; readonly version: number }

/** Proof of a lease: a write with it fails with STORE_FENCED once a later holder has a higher fence. */
export interface Fence {
  readonly lease: string
  readonly fence: number
}

export interface BatchOptions {
  readonly fence?: Fence
}

/** The version of each put (0 for a delete), the last seq of each append, in the order of the operations; 0 for the others. */
export interface BatchResult {
  readonly results: readonly number[]
}

/** A range over an index (or over keys, without `index`). `equals` fixes leading paths; `from` and `to` bound the next one. */
export interface RangeQuery {
  readonly index?: string
  readonly equals?: readonly Json[]
  /** First value of the path after `equals` (the key, where no path is left), inclusive. */
  readonly from?: Json
  /** End of the same, exclusive. */
  readonly to?: Json
  readonly reverse?: boolean
  /** At most so many; 1 to 1000. A page may end earlier where its values are large: only an absent `next` is the end. */
  readonly limit: number
  /** `next` of the page before. */
  readonly cursor?: string
}
export interface RangePage<T = Json> {
  readonly records: readonly StoreRecord<T>[]
  /** Where the next page begins; absent at the end. */
  readonly next?: string
}

/** Entries of one stream of a log, by seq; at most 10,000 at once. */
export interface LogQuery {
  /** First seq, inclusive. Default 1, or the end when `reverse`. */
  readonly from?: number
  readonly reverse?: boolean
  readonly limit: number
}

/** A lease that was got: `fence` rises with each new holder and never falls, a power cut included. */
export interface Lease {
  readonly lease: string
  readonly fence: number
  /** Unix milliseconds. */
  readonly expiresAt: number
}
export interface LeaseRequest {
  /** Who holds it: processes of one server may share a prefix, so that a death can free all of a holder's leases. */
  readonly holder: string
  /** Milliseconds it lasts without renewal. */
  readonly ttlMs: number
  /** Milliseconds to wait for it, in order of asking within one process; 0 = answer at once. Then LEASE_BUSY. */
  readonly waitMs: number
}

/**
 * A window of a count: it begins with the first hit, lasts so long and is then forgotten. It is known by its place in the list (1 to 16 windows): one whose
 * length or limit has changed since the last call keeps its hits.
 */
export interface CountWindow {
  /** Milliseconds. */
  readonly ms: number
  /** At most so many hits. */
  readonly limit: number
}
/** How a window stands after a hit, or after the hit that it refused. */
export interface CountState {
  readonly count: number
  /** Unix milliseconds at which it ends. */
  readonly endsAt: number
}
/** `counted` is false when a window was full: then no window has counted the hit. */
export interface Counted {
  readonly counted: boolean
  /** In the order of the windows asked. */
  readonly windows: readonly CountState[]
}

/** A record of a watched collection that changed, as soon as it is known; `value` is absent and `version` 0 when it was deleted. */
export interface StoreChange {
  readonly collection: string
  readonly key: string
  readonly version: number
  readonly value?: Json
}

/**
 * Where everything is kept that must last or be shared: knows no domain. What it acknowledged survives SIGKILL and power loss
 * (unless the store says that it is in memory), whole batches or nothing.
 * Errors: STORE_CONFLICT (`details: {op, expected, actual}`: the index of the operation and its versions), STORE_FENCED, STORE_NEWER, STORE_UNKNOWN
 * (a collection, index or log that no space declares), STORE_INVALID (a call that breaks this contract), STORE_TOO_LARGE (a value of more than 16 MiB of JSON,
 * a batch of more than 64 MiB or 10,000 operations, a store that is full), STORE_UNAVAILABLE (`details.retryable`), LEASE_BUSY.
 */
export interface Store {
  /**
   * Declares a space and answers the schema version of what is stored: 0 for nothing yet (it is then of the declared version).
   * Lower than declared: the plugin migrates and ends with `migrated`. Higher: STORE_NEWER. New indexes are built here.
   */
  open(space: Space, ctx: CallContext): Promise<{ readonly version: number }>
  get(collection: string, key: string, ctx: CallContext): Promise<StoreRecord | undefined>
  range(collection: string, query: RangeQuery, ctx: CallContext): Promise<RangePage>
  read(log: string, id: string, query: LogQuery, ctx: CallContext): Promise<readonly LogEntry[]>
  /** All of it or nothing, in this order, durable once answered. An abort after the commit began does not undo it. */
  batch(ops: readonly StoreOp[], options: BatchOptions, ctx: CallContext): Promise<BatchResult>
  acquire(lease: string, request: LeaseRequest, ctx: CallContext): Promise<Lease>
  /** Extends a lease that is still held. STORE_FENCED when it is not. */
  renew(lease: Fence, ttlMs: number, ctx: CallContext): Promise<Lease>
  /** Gives it back; the next who waits gets it. Releasing a lost lease does nothing. */
  release(lease: Fence, ctx: CallContext): Promise<void>
  /** Gives back all leases of holders that begin with `holderPrefix`: for a process that died. */
  releaseHolder(holderPrefix: string, ctx: CallContext): Promise<void>
  /**
   * Counts one hit under `key` in all of these windows, or in none if one is full: exact for all processes that share the store. Outlives every process;
   * needs no fsync, so that a power cut may forget the last hits. A store may forget the windows that were begun first when it has more than a million.
   */
  count(key: string, windows: readonly CountWindow[], ctx: CallContext): Promise<Counted>
  /**
   * Changes of a watched collection from now on, of all processes; may skip intermediate versions of one key, never the last. Ends with the signal;
   * a reader that falls too far behind gets STORE_UNAVAILABLE.
   */
  watch(collection: string, ctx: CallContext): AsyncIterable<StoreChange>
  /** Writes and reads something: throws STORE_UNAVAILABLE with the reason. `shared` is false where each process has its own: then a server can have one worker only. */
  probe(ctx: CallContext): Promise<{ readonly kind: string; readonly durable: boolean; readonly shared?: false }>
}

export const Store = defineService<Store>('store', {
  api: 1,
  methods: {
    open: 'call',
    get: 'call',
    range: 'call',
    read: 'call',
    batch: 'call',
    acquire: 'call',
    renew: 'call',
    release: 'call',
    releaseHolder: 'call',
    count: 'call',
    watch: 'stream',
    probe: 'call',
  },
})
