import { defineService, type CallContext, type Series } from '@svc/core'
import type { Json } from './store.ts'

/** A member of the bus: a worker of any server of the cluster. */
export interface BusMember {
  /** `HostReport.worker`. */
  readonly worker: string
  /** `HostReport.nodeId`. */
  readonly node: string
  /** What the worker publishes about itself, such as its roles: at most 4 KiB of JSON. */
  readonly facts: Json
}

export interface BusMessage {
  /** The worker that sent it. */
  readonly from: string
  /** The plugin's name, or `name.what`. */
  readonly topic: string
  readonly message: Json
}

export interface NodeBusHooks {
  /** Another worker has published a message. Messages of one worker arrive in its order. */
  message: Series<BusMessage>
  /** A worker has joined, or has changed its facts. */
  joined: Series<BusMember>
  /** A worker has left, or is lost. Its permits are free, and so are its leases: `holder` is the prefix of their holder names. */
  gone: Series<{ readonly worker: string; readonly node: string; readonly holder: string }>
  /** This worker was cut off, so messages to it can be lost: those of the worker `from`, or of any. */
  missed: Series<{ readonly from: string | undefined }>
}

/**
 * Connects the workers of all servers of a cluster: membership, messages, requests and shared limits. It stores nothing durably: write durable changes to
 * the store first, then announce them here. A message reaches a worker at most once; one that joins later does not get it. Most plugins need only `Peers`.
 * Isolated plugins have topics and permits of their own, ask only for answers that they give themselves, and cannot join or leave (NOT_PERMITTED).
 */
export interface NodeBus {
  /** Joins, or changes the facts of this worker. Resolves when this worker gets the messages of others. Throws BUS_TOO_LARGE. */
  join(facts: Json, ctx: CallContext): Promise<void>
  /** Leaves: the others learn that this worker is gone. */
  leave(ctx: CallContext): Promise<void>
  /** All members, this one included, by name. A worker that is lost stays a member for up to 15 seconds. */
  members(ctx: CallContext): Promise<readonly BusMember[]>
  /** Sends a message to all other members and does not wait for them. Throws BUS_TOO_LARGE for more than 64 KiB of JSON. */
  publish(topic: string, message: Json, ctx: CallContext): Promise<void>
  /**
   * Sends a request to one member and streams the answer of its item `topic` in the slot `PeerAnswers`. Throws PEER_GONE when that worker is not or no longer a
   * member, and PEER_SILENT when it has no such item. An answer is a stream of at most 64 KiB per part.
   */
  call(worker: string, topic: string, message: Json, ctx: CallContext): AsyncIterable<Json>
  /** Acquires one of `limit` permits that the whole cluster shares. It is free again when this worker releases it, leaves or is lost. */
  acquire(name: string, limit: number, ctx: CallContext): Promise<boolean>
  release(name: string, ctx: CallContext): Promise<void>
}
export const NodeBus = defineService<NodeBus, NodeBusHooks>('node_bus', {
  api: 1,
  methods: {
    join: 'call',
    leave: 'call',
    members: 'call',
    publish: 'call',
    call: 'stream',
    acquire: 'call',
    release: 'call',
  },
  hooks: { message: 'series', joined: 'series', gone: 'series', missed: 'series' },
})
