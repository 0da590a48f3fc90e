import type { Channel } from '../processes/channel.ts'
import { systemContext, type CallContext } from '@svc/core'
import { leaving } from './errors.ts'
import { type Ended, PeerHub, PeerEnd, type PeerMetrics, type PeerNews, type Snapshot } from './peer-contract.ts'

/** What a worker does with what comes from its peers. */
export interface PeerHandlers {
  told(news: PeerNews, ctx: CallContext): Promise<void>
  metrics(ctx: CallContext): Promise<PeerMetrics>
  inherit(metrics: PeerMetrics, ctx: CallContext): Promise<void>
  gone(pid: number, ctx: CallContext): Promise<void>
  wanted(name: string, ctx: CallContext): Promise<void>
  answer(topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown>
}

/** A worker's line to its peers. */
export interface PeerLink {
  /** From here on this worker is one of them: has taken, when this answers, all that was told since it was forked. To be called before it serves. */
  join(handlers: PeerHandlers): Promise<void>
  /** Tells all others; answers when they have taken it. Throws UNAVAILABLE. */
  tell(news: PeerNews, ctx: CallContext): Promise<void>
  /** The figures of all workers, this one's first; `ended` marks those of one that has ended. */
  metrics(ctx: CallContext): Promise<readonly PeerMetrics[]>
  /** Takes one of `limit` places that all workers share. */
  enter(name: string, limit: number, ctx: CallContext): Promise<boolean>
  vacate(name: string, ctx: CallContext): Promise<void>
  /** The name by which others ask this worker. */
  self(): Promise<string>
  /** What another worker answers to a topic. Throws PEER_GONE. */
  ask(worker: string, topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown>
  /** Hands in the last figures: this worker serves no more. */
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
  #timer: NodeJS.Timeout | undefined
  #left = false
  /** What this worker handed in last: while it is taken apart it would say less. */
  #last: Snapshot | undefined

  constructor(channel: Channel) {
    this.#ctx = systemContext(channel.signal, 'peers')
    this.#hub = channel.reach('peers', PeerHub)
    channel.offer('peer', PeerEnd, {
      told: (news, ctx) => this.#once(() => this.#handlers?.told(news, ctx)),
      gone: (pid, ctx) => this.#once(() => this.#handlers?.gone(pid, ctx)),
      metrics: () => this.#snapshot(),
      inherit: ended => this.#inherit(ended),
      wanted: async (name, ctx) => this.#handlers?.wanted(name, ctx),
      answer: (topic, message, ctx) => this.#answer(topic, message, ctx),
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

  tell(news: PeerNews, ctx: CallContext): Promise<void> {
    return this.#hub.tell(news, ctx)
  }

  async metrics(ctx: CallContext): Promise<readonly PeerMetrics[]> {
    return this.#hub.gather(await this.#snapshot(), ctx)
  }

  enter(name: string, limit: number, ctx: CallContext): Promise<boolean> {
    return this.#hub.enter(name, limit, ctx)
  }

  vacate(name: string, ctx: CallContext): Promise<void> {
    return this.#hub.vacate(name, ctx)
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

  /** What comes before this worker has joined waits until it has; one that serves no more need not hear it. */
  async #once(work: () => Promise<void> | undefined): Promise<void> {
    if (this.#left) return
    if (this.#handlers) return work()
    const done = this.#joined.promise.then(work)
    this.#early.add(done)
    await done
    this.#early.delete(done)
  }

  /** One that ends still answers: for what it has begun. */
  async *#answer(topic: string, message: unknown, ctx: CallContext): AsyncGenerator<unknown, void> {
    await this.#joined.promise
    yield* this.#handlers!.answer(topic, message, ctx)
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

  #snapshot(): Promise<Snapshot> {
    return this.#inTurn(async () => {
      if (this.#last) return this.#last
      const metrics = (await this.#handlers?.metrics(this.#ctx)) ?? {}
      return { seq: ++this.#seq, metrics, took: [...this.#took] }
    })
  }

  async #inherit({ id, metrics }: Ended): Promise<Snapshot> {
    if (this.#left) throw leaving()
    await this.#inTurn(async () => {
      await this.#handlers?.inherit(metrics, this.#ctx)
      this.#took.push(id)
    })
    return this.#snapshot()
  }

  /** A snapshot has an inheritance wholly, or not at all. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(work)
    this.#turn = mine.catch(() => {})
    return mine
  }
}
