import type { Channel } from '../processes/channel.ts'
import { systemUse, type Use } from '@svc/core'
import { leaving } from './errors.ts'
import { type Ended, PeerHub, PeerEnd, type PeerFigures, type PeerNews, type Snapshot } from './peer-contract.ts'

/** What a worker does with what comes from its peers. */
export interface PeerHandlers {
  told(news: PeerNews, use: Use): Promise<void>
  figures(use: Use): Promise<PeerFigures>
  inherit(figures: PeerFigures, use: Use): Promise<void>
  gone(pid: number, use: Use): Promise<void>
  wanted(name: string, use: Use): Promise<void>
  answer(topic: string, message: unknown, use: Use): AsyncIterable<unknown>
}

/** A worker's line to its peers. */
export interface PeerLink {
  /** From here on this worker is one of them: has taken, when this answers, all that was told since it was forked. To be called before it serves. */
  join(handlers: PeerHandlers): Promise<void>
  /** Tells all others; answers when they have taken it. Throws UNAVAILABLE. */
  tell(news: PeerNews, use: Use): Promise<void>
  /** The figures of all workers, this one's first; `ended` marks those of one that has ended. */
  figures(use: Use): Promise<readonly PeerFigures[]>
  /** Takes one of `limit` places that all workers share. */
  enter(name: string, limit: number, use: Use): Promise<boolean>
  vacate(name: string, use: Use): Promise<void>
  /** The name by which others ask this worker. */
  self(): Promise<string>
  /** What another worker answers to a topic. Throws PEER_GONE. */
  ask(worker: string, topic: string, message: unknown, use: Use): AsyncIterable<unknown>
  /** Hands in the last figures: this worker serves no more. */
  leave(): Promise<void>
}

const PUSH_MS = 1_000

export function createPeerLink(channel: Channel): PeerLink {
  return new WorkerPeerLink(channel)
}

class WorkerPeerLink implements PeerLink {
  readonly #hub: PeerHub
  readonly #use: Use
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
    this.#use = systemUse(channel.signal, 'peers')
    this.#hub = channel.reach('peers', PeerHub)
    channel.offer('peer', PeerEnd, {
      told: (news, use) => this.#once(() => this.#handlers?.told(news, use)),
      gone: (pid, use) => this.#once(() => this.#handlers?.gone(pid, use)),
      figures: () => this.#snapshot(),
      inherit: ended => this.#inherit(ended),
      wanted: async (name, use) => this.#handlers?.wanted(name, use),
      answer: (topic, message, use) => this.#answer(topic, message, use),
    })
    channel.signal.addEventListener('abort', () => clearInterval(this.#timer), { once: true })
  }

  async join(handlers: PeerHandlers): Promise<void> {
    await this.#hub.join(this.#use)
    this.#handlers = handlers
    this.#joined.resolve()
    await Promise.allSettled(this.#early)
    this.#timer = setInterval(() => void this.#push().catch(() => {}), PUSH_MS)
    this.#timer.unref()
  }

  tell(news: PeerNews, use: Use): Promise<void> {
    return this.#hub.tell(news, use)
  }

  async figures(use: Use): Promise<readonly PeerFigures[]> {
    return this.#hub.gather(await this.#snapshot(), use)
  }

  enter(name: string, limit: number, use: Use): Promise<boolean> {
    return this.#hub.enter(name, limit, use)
  }

  vacate(name: string, use: Use): Promise<void> {
    return this.#hub.vacate(name, use)
  }

  self(): Promise<string> {
    return this.#hub.self(this.#use)
  }

  ask(worker: string, topic: string, message: unknown, use: Use): AsyncIterable<unknown> {
    return this.#hub.ask(worker, topic, message, use)
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
  async *#answer(topic: string, message: unknown, use: Use): AsyncGenerator<unknown, void> {
    await this.#joined.promise
    yield* this.#handlers!.answer(topic, message, use)
  }

  async #push(): Promise<Snapshot> {
    const snapshot = await this.#snapshot()
    const text = JSON.stringify(snapshot.figures)
    if (text === this.#pushed && snapshot.took.length === 0) return snapshot
    await this.#hub.push(snapshot, this.#use)
    this.#pushed = text
    this.#took = this.#took.filter(id => !snapshot.took.includes(id))
    return snapshot
  }

  #snapshot(): Promise<Snapshot> {
    return this.#inTurn(async () => {
      if (this.#last) return this.#last
      const figures = (await this.#handlers?.figures(this.#use)) ?? {}
      return { seq: ++this.#seq, figures, took: [...this.#took] }
    })
  }

  async #inherit({ id, figures }: Ended): Promise<Snapshot> {
    if (this.#left) throw leaving()
    await this.#inTurn(async () => {
      await this.#handlers?.inherit(figures, this.#use)
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
