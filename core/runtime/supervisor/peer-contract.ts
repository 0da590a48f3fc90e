import { defineService, type CallContext } from '@svc/core'
import type { OperatorAnswerPart, OperatorRequest, PeerMessage } from '@svc/core/contracts'

/** The metrics of one worker, by plugin: plain data. */
export type PeerMetrics = Readonly<Record<string, unknown>>

/** The metrics of a worker at one moment. */
export interface Snapshot {
  /** Grows with each snapshot of this worker. The highest number wins. */
  readonly seq: number
  readonly metrics: PeerMetrics
  /** The exited workers whose metrics are included, as far as the supervisor has not confirmed them yet. */
  readonly took: readonly number[]
}

/** The final metrics of a worker that has exited. */
export interface FinalMetrics {
  readonly id: number
  readonly metrics: PeerMetrics
}

/** What the supervisor offers to each worker for contact with its peers. */
export interface PeerHub {
  /** After this call, broadcasts of others wait for this worker. Earlier broadcasts arrive before the call returns. */
  join(ctx: CallContext): Promise<void>
  /** Sends a message to all other workers and resolves when they have handled it. Throws UNAVAILABLE. */
  broadcast(message: PeerMessage, ctx: CallContext): Promise<void>
  push(snapshot: Snapshot, ctx: CallContext): Promise<void>
  /** The metrics of all workers, the caller's first. Those of exited workers that no other worker has inherited are marked `ended`; the others have a `generation`. */
  gather(snapshot: Snapshot, ctx: CallContext): Promise<readonly PeerMetrics[]>
  /** Acquires one of `limit` permits that all workers share. It is free again when this worker releases it or exits. */
  acquire(name: string, limit: number, ctx: CallContext): Promise<boolean>
  release(name: string, ctx: CallContext): Promise<void>
  /** The name under which other workers reach the caller. */
  self(ctx: CallContext): Promise<string>
  /** Streams the answer of a worker to a request. Throws PEER_GONE. */
  ask(worker: string, topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown>
}
export const PeerHub = defineService<PeerHub>('peer_hub', {
  api: 1,
  methods: {
    join: 'call',
    broadcast: 'call',
    push: 'call',
    gather: 'call',
    acquire: 'call',
    release: 'call',
    self: 'call',
    ask: 'stream',
  },
})

/** What each worker offers to the supervisor and, through it, to its peers. */
export interface PeerEnd {
  message(message: PeerMessage, ctx: CallContext): Promise<void>
  metrics(ctx: CallContext): Promise<Snapshot>
  inherit(ended: FinalMetrics, ctx: CallContext): Promise<Snapshot>
  /** Reports that a worker has exited. */
  workerExit(worker: string, ctx: CallContext): Promise<void>
  /** Releases the permits of this name that the worker keeps but does not need. The releases arrive before the call returns. */
  reclaim(name: string, ctx: CallContext): Promise<void>
  /** Streams the answer to the request of a peer. */
  answer(topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown>
  /** Answers a request of the operator. Only the supervisor sends one: workers cannot reach this method of each other. */
  operate(request: OperatorRequest, ctx: CallContext): AsyncIterable<OperatorAnswerPart>
}
export const PeerEnd = defineService<PeerEnd>('peer_end', {
  api: 1,
  methods: {
    message: 'call',
    metrics: 'call',
    inherit: 'call',
    workerExit: 'call',
    reclaim: 'call',
    answer: 'stream',
    operate: 'stream',
  },
})
