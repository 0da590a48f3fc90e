import type { Channel } from '../processes/channel.ts'
import { systemContext, type CallContext } from '@svc/core'
import type { OperatorAnswerPart, OperatorAnswers, OperatorRequest, PeerMessage } from '@svc/core/contracts'
import { workerLeaving } from './errors.ts'
import { type FinalMetrics, PeerHub, PeerEnd, type PeerMetrics, type Snapshot } from './peer-contract.ts'

/** Handles what arrives from other workers. */
export interface PeerHandlers {
  message(message: PeerMessage, ctx: CallContext): Promise<void>
  metrics(ctx: CallContext): Promise<PeerMetrics>
  inherit(metrics: PeerMetrics, ctx: CallContext): Promise<void>
  workerExit(worker: string, ctx: CallContext): Promise<void>
  reclaim(name: string, ctx: CallContext): Promise<void>
  answer(topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown>
  readonly operate: OperatorAnswers
}

/** Connects a worker to its peers. */
export interface PeerLink {
  /** Joins the peers. Call it before the worker serves. When it resolves, the worker has handled all messages since its fork. */
  join(handlers: PeerHandlers): Promise<void>
  /** Sends a message to all other workers and resolves when they have handled it. Throws UNAVAILABLE. */
  broadcast(message: PeerMessage, ctx: CallContext): Promise<void>
  /** The metrics of all workers, this one's first. `ended` marks those of a worker that has exited. */
  metrics(ctx: CallContext): Promise<readonly PeerMetrics[]>
  /** Acquires one of `limit` permits that all workers share. */
  acquire(name: string, limit: number, ctx: CallContext): Promise<boolean>
  release(name: string, ctx: CallContext): Promise<void>
  /** The name under which other workers reach this one. */
  self(): Promise<string>
  /** Streams the answer of another worker. Throws PEER_GONE. */
  ask(worker: string, topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown>
  /** Pushes the final metrics. The worker no longer serves. */
  leave(): Promise<void>
}

const PUSH_MS = 1_000

export function createPeerLink(channel: Channel): PeerLink {
  return new WorkerPeerLink(channel)
}

class WorkerPeerLink implements PeerLink {
  readonly #hub: PeerHub
  readonly #ctx: CallContext
  readonly #joined = Promise.withResolvers<void>()
  readonly #early = new Set<Promise<void>>()
  #handlers: PeerHandlers | undefined
  #took: number[] = []
  #seq = 0
  #pushed = ''
  #turn: Promise<unknown> = Promise.resolve()
  /** The snapshot that has not begun yet. */
  #next: Promise<Snapshot> | undefined
  #timer: NodeJS.Timeout | undefined
  #left = false
  /** The final snapshot. Later ones would be incomplete, because plugins are already closing. */
  #last: Snapshot | undefined

  constructor(channel: Channel) {
    this.#ctx = systemContext(channel.signal, 'peers')
    this.#hub = channel.reach('peers', PeerHub)
    channel.offer('peer', PeerEnd, {
      message: (message, ctx) => this.#whenJoined(() => this.#handlers?.message(message, ctx)),
      workerExit: (worker, ctx) => this.#whenJoined(() => this.#handlers?.workerExit(worker, ctx)),
      metrics: () => this.#snapshot(),
      inherit: ended => this.#inherit(ended),
      reclaim: async (name, ctx) => this.#handlers?.reclaim(name, ctx),
      answer: (topic, message, ctx) => this.#answer(topic, message, ctx),
      operate: (request, ctx) => this.#operate(request, ctx),
    })
    channel.signal.addEventListener('abort', () => clearInterval(this.#timer), { once: true })
  }

  async join(handlers: PeerHandlers): Promise<void> {
    await this.#hub.join(this.#ctx)
    this.#handlers = handlers
    this.#joined.resolve()
    await Promise.allSettled(this.#early)
    this.#timer = setInterval(() => void this.#push().catch(() => {}), PUSH_MS)
    this.#timer.unref()
  }

  broadcast(message: PeerMessage, ctx: CallContext): Promise<void> {
    return this.#hub.broadcast(message, ctx)
  }

  async metrics(ctx: CallContext): Promise<readonly PeerMetrics[]> {
    return this.#hub.gather(await this.#snapshot(), ctx)
  }

  acquire(name: string, limit: number, ctx: CallContext): Promise<boolean> {
    return this.#hub.acquire(name, limit, ctx)
  }

  release(name: string, ctx: CallContext): Promise<void> {
    return this.#hub.release(name, ctx)
  }

  self(): Promise<string> {
    return this.#hub.self(this.#ctx)
  }

  ask(worker: string, topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown> {
    return this.#hub.ask(worker, topic, message, ctx)
  }

  async leave(): Promise<void> {
    clearInterval(this.#timer)
    this.#left = true
    this.#last = await this.#push()
  }

  /** Delays `work` until the worker has joined, and skips it after the worker has left. */
  async #whenJoined(work: () => Promise<void> | undefined): Promise<void> {
    if (this.#left) return
    if (this.#handlers) return work()
    const done = this.#joined.promise.then(work)
    this.#early.add(done)
    await done
    this.#early.delete(done)
  }

  /** A closing worker still answers requests about work that it has begun. */
  async *#answer(topic: string, message: unknown, ctx: CallContext): AsyncGenerator<unknown, void> {
    await this.#joined.promise
    yield* this.#handlers!.answer(topic, message, ctx)
  }

  async *#operate(request: OperatorRequest, ctx: CallContext): AsyncGenerator<OperatorAnswerPart, void> {
    await this.#joined.promise
    yield* this.#handlers!.operate(request, ctx)
  }

  async #push(): Promise<Snapshot> {
    const snapshot = await this.#snapshot()
    const text = JSON.stringify(snapshot.metrics)
    if (text === this.#pushed && snapshot.took.length === 0) return snapshot
    await this.#hub.push(snapshot, this.#ctx)
    this.#pushed = text
    this.#took = this.#took.filter(id => !snapshot.took.includes(id))
    return snapshot
  }

  /** One for all that ask before it begins: those of a slow worker do not pile up. */
  #snapshot(): Promise<Snapshot> {
    return (this.#next ??= this.#inTurn(async () => {
      this.#next = undefined
      if (this.#last) return this.#last
      const metrics = (await this.#handlers?.metrics(this.#ctx)) ?? {}
      return { seq: ++this.#seq, metrics, took: [...this.#took] }
    }))
  }

  async #inherit({ id, metrics }: FinalMetrics): Promise<Snapshot> {
    if (this.#left) throw workerLeaving()
    await this.#inTurn(async () => {
      await this.#handlers?.inherit(metrics, this.#ctx)
      this.#took.push(id)
    })
    return this.#snapshot()
  }

  /** Runs one task after the other: a snapshot contains inherited metrics completely or not at all. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(work)
    this.#turn = mine.catch(() => {})
    return mine
  }
}
