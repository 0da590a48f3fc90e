import { defineService, type CallContext } from '@svc/core'

/** What a plugin counts, under its name: plain data. */
export type PeerMetrics = Readonly<Record<string, unknown>>

/** Something told under a topic. */
export interface PeerNews {
  readonly topic: string
  readonly message: unknown
}

/** What a worker has counted, at one moment. */
export interface Snapshot {
  /** Grows with each of this worker: a later one counts. */
  readonly seq: number
  readonly metrics: PeerMetrics
  /** The ended workers whose figures are part of these, as far as the supervisor may not know it yet. */
  readonly took: readonly number[]
}

/** The last figures of a worker that has ended. */
export interface Ended {
  readonly id: number
  readonly metrics: PeerMetrics
}

/** What the supervisor does for a worker among its peers. */
export interface PeerHub {
  /** From its answer on the others wait until this worker has taken what they tell; what was told before came before the answer. */
  join(ctx: CallContext): Promise<void>
  /** Tells all others; answers when they have taken it. Throws UNAVAILABLE. */
  tell(news: PeerNews, ctx: CallContext): Promise<void>
  push(snapshot: Snapshot, ctx: CallContext): Promise<void>
  /** The figures of all workers, the caller's first; those of ended ones that nobody has inherited are marked `ended`; each living one has its `generation`. */
  gather(snapshot: Snapshot, ctx: CallContext): Promise<readonly PeerMetrics[]>
  /** Takes one of `limit` places that all workers share; it is free again when this worker vacates it, or ends. */
  enter(name: string, limit: number, ctx: CallContext): Promise<boolean>
  vacate(name: string, ctx: CallContext): Promise<void>
  /** The name by which others ask the caller. */
  self(ctx: CallContext): Promise<string>
  /** What a worker answers to a topic. Throws PEER_GONE. */
  ask(worker: string, topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown>
}
export const PeerHub = defineService<PeerHub>('peer_hub', {
  api: 1,
  methods: {
    join: 'call',
    tell: 'call',
    push: 'call',
    gather: 'call',
    enter: 'call',
    vacate: 'call',
    self: 'call',
    ask: 'stream',
  },
})

/** What a worker does for its supervisor and its peers. */
export interface PeerEnd {
  told(news: PeerNews, ctx: CallContext): Promise<void>
  metrics(ctx: CallContext): Promise<Snapshot>
  inherit(ended: Ended, ctx: CallContext): Promise<Snapshot>
  /** A worker has ended. */
  gone(pid: number, ctx: CallContext): Promise<void>
  /** Vacates the places of this name that it only keeps; what it has vacated before comes before the answer. */
  wanted(name: string, ctx: CallContext): Promise<void>
  /** What it answers to a topic, for a peer. */
  answer(topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown>
}
export const PeerEnd = defineService<PeerEnd>('peer_end', {
  api: 1,
  methods: { told: 'call', metrics: 'call', inherit: 'call', gone: 'call', wanted: 'call', answer: 'stream' },
})
