import { defineService, type CallContext } from '@svc/core'

/** A plain JSON value, stored as `JSON.stringify` writes it: undefined members are left out, NaN becomes null. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined }

/** One record of a collection. `version` starts at 1 and increases by one with each put. */
export interface StoreRecord<T = Json> {
  readonly key: string
  readonly version: number
  readonly value: T
}

/** One entry of a log. `seq` starts at 1 and has no gaps. */
export interface LogEntry<T = Json> {
  readonly seq: number
  readonly value: T
}

/**
 * An index: paths (`owner`, `meta.kind`) whose values sort its entries, in this order. The key comes last and breaks ties.
 * Values are text, numbers, booleans or null. Their order is null, false, true, numbers, text (by UTF-8 bytes). For a path that
 * is absent or holds a list or an object, the value is null.
 */
export type IndexPaths = readonly string[]

/**
 * The data of a plugin: its collections and logs, under one schema version. Names are `[a-z][a-z0-9_]*` and unique over all
 * plugins.
 */
export interface Space {
  readonly name: string
  /** Schema version of the data, from 1. */
  readonly version: number
  readonly collections?: { readonly [collection: string]: Collection }
  readonly logs?: readonly string[]
}

/** A full-text index of a collection. */
export interface TextFields {
  /** Paths of the searched texts, 1 to 16. A path can hold a text or a list of texts. The first million characters are searched. */
  readonly fields: IndexPaths
  /** Paths whose values `equals` of a search can fix, as in an index of the store: such as the owner. At most 8. */
  readonly filters?: IndexPaths
}

/** Options of a collection. */
export interface Collection {
  readonly indexes?: { readonly [index: string]: IndexPaths }
  /** Full-text indexes, for the service `TextIndex`. */
  readonly text?: { readonly [index: string]: TextFields }
  /** Whether `watch` reports its changes. */
  readonly watched?: boolean
  /**
   * Whether its records survive a restore: the records of the replaced store are kept, not those of the backup with the same
   * key. For records that an old state must not revert, such as a revoked right. Mark such a record, never delete it.
   */
  readonly lasting?: boolean
}

/**
 * A change of a batch. Keys, stream ids and lease names are 1 to 1024 bytes of UTF-8, well-formed and without U+0000.
 * `ifVersion`: 0 = must not exist, n = must have that version, absent = any.
 */
export type StoreOp =
  | { readonly op: 'put'; readonly collection: string; readonly key: string; readonly value: Json; readonly ifVersion?: number }
  | { readonly op: 'delete'; readonly collection: string; readonly key: string; readonly ifVersion?: number }
  /** Appends values to the log `log` of the stream `id`. `ifLength`: the expected number of entries. */
  | {
      readonly op: 'append'
      readonly log: string
      readonly id: string
      readonly values: readonly Json[]
      readonly ifLength?: number
    }
  /** Deletes the whole stream `id` of a log. */
  | { readonly op: 'drop'; readonly log: string; readonly id: string }
  /** Sets the schema version of a space: the last operation of a migration. */
  | { readonly op: 'migrated'; readonly space: string; readonly version: number }

/** Proof of a lease. A write with it fails with STORE_FENCED once a later holder has a higher fence. */
export interface Fence {
  readonly lease: string
  readonly fence: number
}

export interface BatchOptions {
  readonly fence?: Fence
}

/** The version of each put (0 for a delete) and the last seq of each append, in the order of the operations; 0 for the others. */
export interface BatchResult {
  readonly results: readonly number[]
}

/** A range over an index, or over keys without `index`. `equals` fixes leading paths; `from` and `to` bound the next one. */
export interface RangeQuery {
  readonly index?: string
  readonly equals?: readonly Json[]
  /** First value of the path after `equals` (or of the key), inclusive. */
  readonly from?: Json
  /** End of the range, exclusive. */
  readonly to?: Json
  readonly reverse?: boolean
  /** Maximum number of records, 1 to 1000. A page can be shorter when values are large. Only an absent `next` marks the end. */
  readonly limit: number
  /** `next` of the previous page. */
  readonly cursor?: string
}
export interface RangePage<T = Json> {
  readonly records: readonly StoreRecord<T>[]
  /** Cursor of the next page; absent at the end. */
  readonly next?: string
}

/** Entries of one stream of a log, by seq, at most 10,000 per call. */
export interface LogQuery {
  /** First seq, inclusive. Default 1, or the end when `reverse`. */
  readonly from?: number
  readonly reverse?: boolean
  readonly limit: number
}

/**
 * An acquired lease. `fence` is a safe integer. It increases with each new holder and never decreases, even after a power failure
 * or a failover to another server of the store.
 */
export interface Lease {
  readonly lease: string
  readonly fence: number
  /** Unix milliseconds by the clock of the store, which can differ from the clock of the holder: only to be shown. */
  readonly expiresAt: number
  /**
   * Milliseconds from the call of `acquire` or `renew` on, by the monotonic clock of the holder (`performance.now()`). The holder
   * stops by itself before they are over.
   */
  readonly validMs: number
}
export interface LeaseRequest {
  /**
   * The holder. It begins with the name of its worker in the cluster and `/`, so that all leases of a dead worker, or of all
   * workers of a dead server, can be released by prefix.
   */
  readonly holder: string
  /** Milliseconds until it expires without renewal. */
  readonly ttlMs: number
  /** Milliseconds to wait, first come, first served within one process. 0: fail at once with LEASE_BUSY. */
  readonly waitMs: number
}

/** A changed record of a watched collection. When it was deleted, `value` is absent and `version` is 0. */
export interface StoreChange {
  readonly collection: string
  readonly key: string
  readonly version: number
  readonly value?: Json
}

/** The condition of a store that answers. */
export interface StoreProbe {
  /** The name of its engine, such as `sqlite`. */
  readonly kind: string
  /** Whether acknowledged batches survive a power failure. */
  readonly durable: boolean
  /**
   * What shares its data: this process alone (a server can then have only one worker), the processes of this machine, or the
   * machines of a cluster.
   */
  readonly scope: 'process' | 'machine' | 'cluster'
  /** A `replica` rejects writes. */
  readonly role: 'primary' | 'replica'
  /** The clock of the store minus the clock of this process, in milliseconds. 0 if the difference is too small to measure. */
  readonly clockOffsetMs: number
}

/**
 * Stores all data that must survive or be shared. It knows no domain. Acknowledged batches survive SIGKILL and power failures
 * as a whole, unless the store reports that it is in memory. Errors: STORE_CONFLICT (`details: {op, expected, actual}`: index
 * of the operation and its versions), STORE_FENCED, STORE_NEWER, STORE_UNKNOWN (an undeclared collection, index or log),
 * STORE_INVALID (a call that violates this contract), STORE_TOO_LARGE (a value of more than 16 MiB of JSON, a batch of more
 * than 64 MiB or 10,000 operations, a full store), STORE_UNAVAILABLE (nothing was done; `details.retryable`, and `details.reason`
 * `read_only` when it accepts no writes at the moment), STORE_UNSURE (the connection was lost before the answer: the call may have
 * been done completely, or not at all. Never repeat it blindly: read what it changes first), LEASE_BUSY.
 */
export interface Store {
  /**
   * Declares a space and returns the schema version of the stored data. 0: no data yet; it then has the declared version. Lower
   * than declared: the plugin migrates and ends with `migrated`. Higher: STORE_NEWER. Creates new indexes.
   */
  open(space: Space, ctx: CallContext): Promise<{ readonly version: number }>
  get(collection: string, key: string, ctx: CallContext): Promise<StoreRecord | undefined>
  range(collection: string, query: RangeQuery, ctx: CallContext): Promise<RangePage>
  read(log: string, id: string, query: LogQuery, ctx: CallContext): Promise<readonly LogEntry[]>
  /** Applies all operations in order, or none. The result is durable. An abort after the commit started does not undo it. */
  batch(ops: readonly StoreOp[], options: BatchOptions, ctx: CallContext): Promise<BatchResult>
  acquire(lease: string, request: LeaseRequest, ctx: CallContext): Promise<Lease>
  /** Extends a lease. Throws STORE_FENCED when it is no longer held. */
  renew(lease: Fence, ttlMs: number, ctx: CallContext): Promise<Lease>
  /** Releases a lease for the next waiter. A lost lease is ignored. */
  release(lease: Fence, ctx: CallContext): Promise<void>
  /** Releases all leases of holders with this prefix: for a process that died. */
  releaseHolder(holderPrefix: string, ctx: CallContext): Promise<void>
  /**
   * Yields changes of a watched collection from now on, by all processes. It can skip intermediate versions of a key, never the
   * last. Ends when the signal aborts. A reader that falls too far behind gets STORE_UNAVAILABLE.
   */
  watch(collection: string, ctx: CallContext): AsyncIterable<StoreChange>
  /** Writes and reads a value; a replica only reads. Throws STORE_UNAVAILABLE with the reason. */
  probe(ctx: CallContext): Promise<StoreProbe>
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
    watch: 'stream',
    probe: 'call',
  },
})

/** What a store contains. */
export interface StoreContents {
  /** Its size, with what it has not merged yet. */
  readonly bytes: number
  /** The spaces by name, with the versions of their data. */
  readonly spaces: readonly { readonly name: string; readonly version: number }[]
  /** The job kind that backs it up into the svc home. Absent: svc cannot. */
  readonly backup?: string
}

/** Describes the store, for operators. A store that cannot does not provide it. Errors: STORE_UNAVAILABLE. */
export interface StoreAdmin {
  contents(ctx: CallContext): Promise<StoreContents>
}

export const StoreAdmin = defineService<StoreAdmin>('store_admin', { api: 1, methods: { contents: 'call' } })
