import { defineService, defineSlot, type Series, type CallContext, type Waterfall } from '@svc/core'
import type { Json } from './store.ts'

/** Something that one worker tells all, under a topic of the plugin's own (its name, or `name.what`). */
export interface PeerMessage {
  readonly topic: string
  readonly message: Json
}

/**
 * What a worker has counted, by the plugin that counts it: plain figures that can be added to another worker's. `ended` is true in those of a worker that is
 * gone: its totals count, what was current does not. `generation` is told of living ones: the same of all that came with the same reload.
 */
export type WorkerMetrics = {
  readonly [plugin: string]: Json | undefined
  readonly ended?: boolean
  readonly generation?: number
}

export interface PeersHooks {
  /** A worker of this server, perhaps this one, told something. */
  told: Series<PeerMessage>
  /** What this worker has counted since it began, with what it inherited: each tap adds its own under its plugin's name. */
  metrics: Waterfall<WorkerMetrics>
  /** The last figures of a worker that has ended: each tap adds its own to what it counts, so that no total ever falls. What is current (active requests) dies with the worker. */
  inherit: Series<WorkerMetrics>
  /** A worker has ended: what it held is free. `holder` is the prefix of the leases it held. */
  gone: Series<{ readonly holder: string }>
  /** Somebody is about to be refused a place of this name: whoever keeps some that it does not need leaves them, before it answers. */
  wanted: Series<{ readonly name: string }>
}

/**
 * The workers of one server, as far as a plugin may care: to tell all of them something, to sum what they count, and to share a number of places. A host that runs alone has no such service
 * (take it as `optional`); what must last goes through the store, this only spreads the news of it.
 */
export interface Peers {
  /** Runs the `told` taps of every living worker, this one's first; answers when all have taken it, those that end meanwhile aside. Throws UNAVAILABLE when one does not in time. */
  tell(topic: string, message: Json, ctx: CallContext): Promise<void>
  /** The figures of all living workers, this one's first, and of those that ended and are not inherited yet. */
  metrics(ctx: CallContext): Promise<readonly WorkerMetrics[]>
  /**
   * Takes one of the `limit` places of this name that all workers share, those of older generations too; false where all are taken, and nobody who was asked
   * (`wanted`) has left one. It is free again when this worker leaves it, or ends. What is taken although the caller no longer waits must be left too: so give it
   * a `use` that lasts.
   *
   * The supervisor counts in its memory. Over machines, Redis does: a sorted set a name, a member for each place under its worker, scored by the time until
   * which that worker is known to live and which it moves on by itself; one script drops what has run out, counts, and adds. `wanted` is published.
   */
  enter(name: string, limit: number, ctx: CallContext): Promise<boolean>
  /** Leaves one place of this name; what was called before counts before. */
  leave(name: string, ctx: CallContext): Promise<void>
  /** This worker's name, by which others ask it: unique among all that ever were of this server. */
  self(ctx: CallContext): Promise<string>
  /**
   * Asks one worker, this one too: what its item `topic` of the slot `PeerAnswers` answers, as a stream. Throws PEER_GONE where that worker has ended, or ends
   * before its answer does (`details.reached`: whether it may have got the question), and PEER_SILENT where it answers to no such topic.
   */
  ask(worker: string, topic: string, message: Json, ctx: CallContext): AsyncIterable<Json>
}
export const Peers = defineService<Peers, PeersHooks>('peers', {
  api: 1,
  methods: { tell: 'call', metrics: 'call', enter: 'call', leave: 'call', self: 'call', ask: 'stream' },
  hooks: { told: 'series', metrics: 'waterfall', inherit: 'series', gone: 'series', wanted: 'series' },
})

/** What a worker answers when another asks it, by topic (the plugin's name, or `name.what`): for what exists in one worker only. The principal is the asker's. */
export interface PeerAnswer {
  answer(message: Json, ctx: CallContext): AsyncIterable<Json>
}
export const PeerAnswers = defineSlot<PeerAnswer>('peer_answers', { api: 1, methods: { answer: 'stream' } })
