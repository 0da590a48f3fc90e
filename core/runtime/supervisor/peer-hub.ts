import { setTimeout as pause } from 'node:timers/promises'
import { codeOf, systemContext, type CallContext } from '@svc/core'
import type { Channel } from '../processes/channel.ts'
import { notTaken, peerGone } from './errors.ts'
import { type Ended, PeerEnd, type PeerMetrics, PeerHub, type PeerNews, type Snapshot } from './peer-contract.ts'

/** Between two rounds of questions: who is refused a thousand times costs no thousand rounds. */
const PAUSE_MS = 5

/** Places that workers share, by name. `ask` asks one of them to leave those that it only keeps; it ends in time, whatever that one does. */
class SharedSemaphore<W> {
  readonly #ask: (worker: W, name: string) => Promise<unknown>
  readonly #held = new Map<string, Map<W, number>>()
  #last: Promise<unknown> = Promise.resolve()
  #next: Promise<unknown> | undefined
  #wanted = new Set<string>()

  constructor(ask: (worker: W, name: string) => Promise<unknown>) {
    this.#ask = ask
  }

  /** Takes one of `limit`. Nobody is refused before all who hold some have been asked: what they are just leaving is free then. */
  async enter(worker: W, name: string, limit: number): Promise<boolean> {
    if (this.#take(worker, name, limit)) return true
    this.#wanted.add(name)
    await (this.#next ??= this.#last.then(() => this.#round()))
    return this.#take(worker, name, limit)
  }

  leave(worker: W, name: string, count = 1): void {
    const holders = this.#held.get(name)
    const rest = (holders?.get(worker) ?? 0) - count
    if (rest > 0) holders?.set(worker, rest)
    else if (holders?.delete(worker) && holders.size === 0) this.#held.delete(name)
  }

  /** It has ended: what it held is free. */
  forget(worker: W): void {
    for (const name of this.#held.keys()) this.leave(worker, name, Number.POSITIVE_INFINITY)
  }

  #take(worker: W, name: string, limit: number): boolean {
    const holders = this.#held.get(name) ?? new Map<W, number>()
    let sum = 0
    for (const count of holders.values()) sum += count
    if (sum >= limit) return false
    this.#held.set(name, holders.set(worker, (holders.get(worker) ?? 0) + 1))
    return true
  }

  /** One for all names that are wanted by now. */
  #round(): Promise<unknown> {
    const names = [...this.#wanted]
    this.#wanted.clear()
    this.#next = undefined
    const asked = names.flatMap(name => [...(this.#held.get(name)?.keys() ?? [])].map(worker => this.#ask(worker, name)))
    const round = Promise.all(asked)
    this.#last = round.then(() => pause(PAUSE_MS))
    return round
  }
}

/** A connected worker. */
interface PeerConnection {
  readonly id: string
  readonly pid: number
  readonly generation: number
  readonly channel: Channel
  readonly end: PeerEnd
  /** Serves for long yet: it may inherit. */
  readonly isSuccessor: () => boolean
  joined: boolean
  last: Snapshot | undefined
}
interface RetainedMetrics extends Ended {
  successor: PeerConnection | undefined
}

/** A worker that answers no gathering in this time is counted with what it told last. */
const GATHER_MS = 2_000
/** A blocked worker is killed after the hang limit; then nobody waits for it any more. */
const TELL_MS = 15_000
/** A worker that is blocked for longer keeps the places that it might leave. */
const WANT_MS = 1_000

/**
 * Connects the workers of one server: it passes on notifications, shares limits, and adds up metrics. Counters never fall: the hub keeps the last metrics of a
 * worker that has ended.
 */
export class SupervisorPeerHub {
  readonly #peers = new Set<PeerConnection>()
  readonly #places = new SharedSemaphore<PeerConnection>((peer, name) =>
    inTime(peer.end.wanted(name, contextOf(peer)), WANT_MS).catch(() => {})
  )
  #retained: RetainedMetrics[] = []
  #ids = 0
  #names = 0

  /** Gives a worker its place; returns what is called when it has ended. */
  peer(
    { pid, generation }: Pick<PeerConnection, 'pid' | 'generation'>,
    channel: Channel,
    isSuccessor: () => boolean
  ): () => void {
    const id = `w${++this.#names}`
    const end = channel.reach('peer', PeerEnd)
    const peer: PeerConnection = { id, pid, generation, channel, end, isSuccessor, joined: false, last: undefined }
    this.#peers.add(peer)
    channel.offer('peers', PeerHub, {
      join: async () => this.#join(peer),
      tell: (news, ctx) => this.#tell(peer, news, ctx.requestId),
      push: async snapshot => this.#take(peer, snapshot),
      gather: snapshot => this.#gather(peer, snapshot),
      enter: (name, limit) => this.#enter(peer, name, limit),
      vacate: async name => this.#places.leave(peer, name),
      self: async () => id,
      ask: (worker, topic, message, ctx) => this.#ask(worker, topic, message, ctx),
    })
    return () => this.#leave(peer)
  }

  /** News of the supervisor itself for the workers of one generation. */
  announce(news: PeerNews, generation: number): void {
    for (const peer of this.#peers) if (peer.generation === generation) peer.end.told(news, contextOf(peer)).catch(() => {})
  }

  #join(peer: PeerConnection) {
    peer.joined = true
    this.#bequeath()
  }

  async #tell(from: PeerConnection, news: PeerNews, requestId: string): Promise<void> {
    const others = [...this.#peers].filter(peer => peer !== from)
    await Promise.all(others.map(peer => tellOne(peer, news, requestId)))
  }

  async *#ask(worker: string, topic: string, message: unknown, ctx: CallContext): AsyncGenerator<unknown, void> {
    const peer = [...this.#peers].find(({ id }) => id === worker)
    if (!peer) throw peerGone(worker)
    try {
      yield* peer.end.answer(topic, message, ctx)
    } catch (error) {
      throw peer.channel.signal.aborted ? peerGone(worker, error) : error
    }
  }

  async #enter(peer: PeerConnection, name: string, limit: number): Promise<boolean> {
    const entered = await this.#places.enter(peer, name, limit)
    if (!this.#peers.has(peer)) this.#places.forget(peer)
    return entered
  }

  async #gather(from: PeerConnection, snapshot: Snapshot): Promise<readonly PeerMetrics[]> {
    this.#take(from, snapshot)
    const others = [...this.#peers].filter(peer => peer !== from && peer.joined)
    await Promise.all(others.map(peer => this.#refresh(peer)))
    // all in one turn: what one worker inherits meanwhile is counted once, with it or without
    const rest = [...this.#peers].filter(peer => peer !== from)
    const living: PeerMetrics[] = [from, ...rest].flatMap(({ last, generation }) =>
      last ? [{ ...last.metrics, generation }] : []
    )
    return [...living, ...this.#retained.map(({ metrics }) => ({ ...metrics, ended: true }))]
  }

  async #refresh(peer: PeerConnection): Promise<void> {
    try {
      this.#take(peer, await inTime(peer.end.metrics(contextOf(peer)), GATHER_MS))
    } catch {
      // it ends or is busy: its last figures count
    }
  }

  #take(peer: PeerConnection, snapshot: Snapshot) {
    if (peer.last && peer.last.seq >= snapshot.seq) return
    peer.last = snapshot
    this.#retained = this.#retained.filter(one => one.successor !== peer || !snapshot.took.includes(one.id))
  }

  #leave(peer: PeerConnection) {
    this.#peers.delete(peer)
    this.#places.forget(peer)
    for (const one of this.#retained) if (one.successor === peer) one.successor = undefined
    if (peer.last) this.#retained.push({ id: ++this.#ids, metrics: peer.last.metrics, successor: undefined })
    for (const other of this.#peers) other.end.gone(peer.pid, contextOf(other)).catch(() => {})
    this.#bequeath()
  }

  /** What no living worker has taken yet goes to the first that stays. */
  #bequeath() {
    const successor = [...this.#peers].find(peer => peer.joined && peer.isSuccessor())
    if (!successor) return
    for (const one of this.#retained.filter(metrics => !metrics.successor)) {
      one.successor = successor
      const { id, metrics } = one
      const taken = successor.end.inherit({ id, metrics }, contextOf(successor))
      taken.then(snapshot => this.#take(successor, snapshot)).catch(() => this.#refused(one, successor))
    }
  }

  #refused(one: RetainedMetrics, successor: PeerConnection) {
    if (one.successor !== successor || !this.#peers.has(successor)) return
    one.successor = undefined
  }
}

async function tellOne(peer: PeerConnection, news: PeerNews, requestId: string): Promise<void> {
  // One that starts takes it before it serves, so nobody waits for it.
  const taken = peer.end.told(news, contextOf(peer, requestId))
  if (!peer.joined) return void taken.catch(() => {})
  try {
    await inTime(taken, TELL_MS)
  } catch (error) {
    if (error === LATE) throw notTaken(peer.pid, news.topic, TELL_MS)
    if (codeOf(error) !== 'PLUGIN_GONE') throw error
  }
}

const contextOf = ({ channel }: PeerConnection, requestId?: string) => systemContext(channel.signal, requestId)

const LATE = new Error('it takes too long')

/** What a busy worker does for so long it may well finish: only this one waits no more. */
async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  work.catch(() => {})
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(LATE), ms)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
