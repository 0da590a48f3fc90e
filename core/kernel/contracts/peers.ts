import { defineService, defineSlot, type Series, type CallContext, type Waterfall } from '@svc/core'
import type { Json } from './store.ts'

/** A message from one worker to all. The topic is the plugin's name, or `name.what`. */
export interface PeerMessage {
  readonly topic: string
  readonly message: Json
}

/**
 * The metrics of one worker, by plugin: plain numbers that can be added to those of another worker. `ended` marks a worker that has exited: its totals still
 * count, its current values do not. `generation` is set for running workers. Workers that started with the same reload share it.
 */
export type WorkerMetrics = {
  readonly [plugin: string]: Json | undefined
  readonly ended?: boolean
  readonly generation?: number
}

export interface PeersHooks {
  /** A worker of this server, possibly this one, sent a message. */
  message: Series<PeerMessage>
  /** Collects the metrics of this worker since its start, inherited ones included. Each tap adds its own under the name of its plugin. */
  metrics: Waterfall<WorkerMetrics>
  /** The final metrics of a worker that has exited. Each tap adds its totals to its own, so that no counter ever falls. Current values, such as active requests, are dropped. */
  inherit: Series<WorkerMetrics>
  /**
   * A worker has exited, and its leases are free. `node` is its `HostReport.nodeId`, and `holder` the prefix of the holder names: the name of the worker and
   * `/`.
   */
  workerExit: Series<{ readonly worker: string; readonly node: string; readonly holder: string }>
  /**
   * This worker was cut off from other servers, so messages to it can be lost: those of the worker `from`, or of any. `broadcast` does
   * not wait for such a worker. A tap reads again what its plugin knows from messages.
   */
  missed: Series<{ readonly from: string | undefined }>
  /** `acquire` is about to fail for this name in some worker. A tap releases permits that its plugin keeps but does not need, before it returns. */
  reclaim: Series<{ readonly name: string }>
}

/**
 * The workers of one server, or of all servers of a cluster: plugins send messages to all of them and share limits. Metrics are those of one server. A host that
 * runs alone has no such service, so declare it as `optional`. Messages are not stored: write lasting changes to the store first, then announce them here.
 * Isolated plugins have topics, permits and metrics of their own, and ask only for answers that they give themselves (NOT_PERMITTED).
 */
export interface Peers {
  /**
   * Runs the `message` taps of every running worker, this one's first. Resolves when all have handled the message; workers that exit or are cut off meanwhile do
   * not count: the latter get the hook `missed` when they are back.
   * Throws UNAVAILABLE after 15 seconds; `details.workers` names those that have not handled it, and all others have.
   */
  broadcast(topic: string, message: Json, ctx: CallContext): Promise<void>
  /** The metrics of all running workers, this one's first, and of exited workers whose metrics no other worker has inherited yet. */
  metrics(ctx: CallContext): Promise<readonly WorkerMetrics[]>
  /**
   * Acquires one of the `limit` permits of this name, which workers of all generations share. Resolves to false when all are taken and no worker released one
   * in the `reclaim` hook. The permit is free again when this worker releases it or exits. Pass a context that outlives the request: a permit that was
   * acquired after the caller stopped waiting must be released too.
   *
   * The supervisor counts in memory; in a cluster `NodeBus` counts for all servers.
   */
  acquire(name: string, limit: number, ctx: CallContext): Promise<boolean>
  /** Releases one permit of this name. Calls take effect in order. */
  release(name: string, ctx: CallContext): Promise<void>
  /** The name of this worker (`HostReport.worker`), under which others reach it with `ask`. No other worker ever has it. */
  self(ctx: CallContext): Promise<string>
  /**
   * Sends a request to one worker, which can be this one, and streams the answer of its item `topic` in the slot `PeerAnswers`. Throws PEER_GONE when that
   * worker has exited, or exits before its answer ends; `details.reached` says whether the request could have arrived. Throws PEER_SILENT when the worker has no
   * such item.
   */
  ask(worker: string, topic: string, message: Json, ctx: CallContext): AsyncIterable<Json>
}
export const Peers = defineService<Peers, PeersHooks>('peers', {
  api: 1,
  methods: { broadcast: 'call', metrics: 'call', acquire: 'call', release: 'call', self: 'call', ask: 'stream' },
  hooks: {
    message: 'series',
    metrics: 'waterfall',
    inherit: 'series',
    workerExit: 'series',
    missed: 'series',
    reclaim: 'series',
  },
})

/**
 * Answers requests of other workers about state that exists in this worker only. Items are named by topic: the plugin's name, or `name.what`. The principal is
 * that of the asking worker's context.
 */
export interface PeerAnswer {
  answer(message: Json, ctx: CallContext): AsyncIterable<Json>
}
export const PeerAnswers = defineSlot<PeerAnswer>('peer_answers', { api: 1, methods: { answer: 'stream' } })
