import { codeOf, systemContext, type CallContext, withTimeout } from '@svc/core'
import type { OperatorAnswerPart, OperatorRequest, PeerMessage } from '@svc/core/contracts'
import type { Channel } from '../processes/channel.ts'
import { broadcastTimeout, peerGone } from './errors.ts'
import { type FinalMetrics, PeerEnd, type PeerMetrics, PeerHub, type Snapshot } from './peer-contract.ts'
import { ReclaimRounds } from './reclaim-rounds.ts'

/** Pause between two rounds of reclaim requests, so that a thousand refusals do not cost a thousand rounds. */
const PAUSE_MS = 5

/** Permits that workers share, by name. `reclaim` asks a worker to release permits that it does not need; it settles in limited time. */
class SharedSemaphore<W> {
  readonly #held = new Map<string, Map<W, number>>()
  readonly #rounds: ReclaimRounds

  constructor(reclaim: (worker: W, name: string) => Promise<unknown>) {
    const holdersOf = (name: string) => [...(this.#held.get(name)?.keys() ?? [])]
    this.#rounds = new ReclaimRounds(
      names => Promise.all(names.flatMap(name => holdersOf(name).map(worker => reclaim(worker, name)))),
      PAUSE_MS
    )
  }

  /** Acquires one of `limit` permits. Before it refuses, all holders get the chance to release permits that they do not need. */
  async acquire(worker: W, name: string, limit: number): Promise<boolean> {
    if (this.#take(worker, name, limit)) return true
    await this.#rounds.ask(name)
    return this.#take(worker, name, limit)
  }

  release(worker: W, name: string, count = 1): void {
    const holders = this.#held.get(name)
    const rest = (holders?.get(worker) ?? 0) - count
    if (rest > 0) holders?.set(worker, rest)
    else if (holders?.delete(worker) && holders.size === 0) this.#held.delete(name)
  }

  /** Frees all permits of a worker that has exited. */
  forget(worker: W): void {
    for (const name of this.#held.keys()) this.release(worker, name, Number.POSITIVE_INFINITY)
  }

  #take(worker: W, name: string, limit: number): boolean {
    const holders = this.#held.get(name) ?? new Map<W, number>()
    let sum = 0
    for (const count of holders.values()) sum += count
    if (sum >= limit) return false
    this.#held.set(name, holders.set(worker, (holders.get(worker) ?? 0) + 1))
    return true
  }
}

/** A connected worker. */
interface PeerConnection {
  /** The name of the worker. */
  readonly id: string
  readonly generation: number
  readonly channel: Channel
  readonly end: PeerEnd
  /** Whether the worker stays long enough to inherit metrics. */
  readonly isSuccessor: () => boolean
  joined: boolean
  last: Snapshot | undefined
}
interface RetainedMetrics extends FinalMetrics {
  successor: PeerConnection | undefined
}

/** A worker that does not report its metrics in this time is counted with its previous ones. */
const GATHER_MS = 2_000
/** Longer than the hang limit, after which the supervisor kills a blocked worker. */
const NOTIFY_MS = 15_000
/** A worker that is blocked for longer keeps its unneeded permits. */
const RECLAIM_MS = 1_000

/**
 * Connects the workers of one server: it passes on notifications, shares limits, and adds up metrics. Counters never fall: the hub keeps the last metrics of a
 * worker that has ended.
 */
export class SupervisorPeerHub {
  readonly #peers = new Set<PeerConnection>()
  readonly #permits = new SharedSemaphore<PeerConnection>((peer, name) =>
    inTime(peer.end.reclaim(name, contextOf(peer)), RECLAIM_MS).catch(() => {})
  )
  readonly #notifyMs: number
  #retained: RetainedMetrics[] = []
  #ids = 0

  /** `notifyMs`: how long a broadcast waits for a worker. */
  constructor({ notifyMs = NOTIFY_MS }: { readonly notifyMs?: number } = {}) {
    this.#notifyMs = notifyMs
  }

  /** Adds a worker. Call the returned function when the worker has exited. */
  peer({ id, generation }: Pick<PeerConnection, 'id' | 'generation'>, channel: Channel, isSuccessor: () => boolean): () => void {
    const end = channel.reach('peer', PeerEnd)
    const peer: PeerConnection = { id, generation, channel, end, isSuccessor, joined: false, last: undefined }
    this.#peers.add(peer)
    channel.offer('peers', PeerHub, {
      join: async () => this.#join(peer),
      broadcast: (message, ctx) => this.#broadcast(peer, message, ctx.requestId),
      push: async snapshot => this.#take(peer, snapshot),
      gather: snapshot => this.#gather(peer, snapshot),
      acquire: (name, limit) => this.#acquire(peer, name, limit),
      release: async name => this.#permits.release(peer, name),
      self: async () => id,
      ask: (worker, topic, message, ctx) =>
        askPeer([...this.#peers].find(({ id }) => id === worker) ?? worker, topic, message, ctx),
    })
    return () => this.#leave(peer)
  }

  /** Sends a message of the supervisor itself to the workers of one generation. */
  announce(message: PeerMessage, generation: number): void {
    for (const peer of this.#peers) if (peer.generation === generation) peer.end.message(message, contextOf(peer)).catch(() => {})
  }

  /** Asks a worker of the newest generation that has joined. Throws PEER_GONE if there is none, and as `Peers.ask`. */
  askNewest(topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown> {
    return askPeer(this.#newest() ?? NO_WORKER, topic, message, ctx)
  }

  /** Sends a request of the operator to such a worker. Throws PEER_GONE. */
  operateNewest(request: OperatorRequest, ctx: CallContext): AsyncIterable<OperatorAnswerPart> {
    return streamOf(this.#newest() ?? NO_WORKER, ({ end }) => end.operate(request, ctx))
  }

  #newest(): PeerConnection | undefined {
    return [...this.#peers].filter(peer => peer.joined).sort((a, b) => b.generation - a.generation)[0]
  }

  #join(peer: PeerConnection) {
    peer.joined = true
    this.#assignRetained()
  }

  async #broadcast(from: PeerConnection, message: PeerMessage, requestId: string): Promise<void> {
    const others = [...this.#peers].filter(peer => peer !== from)
    const handled = await Promise.all(others.map(peer => notifyPeer(peer, message, requestId, this.#notifyMs)))
    const silent = others.filter((_, at) => !handled[at]).map(peer => peer.id)
    if (silent.length > 0) throw broadcastTimeout(silent, message.topic, this.#notifyMs)
  }

  async #acquire(peer: PeerConnection, name: string, limit: number): Promise<boolean> {
    const acquired = await this.#permits.acquire(peer, name, limit)
    if (!this.#peers.has(peer)) this.#permits.forget(peer)
    return acquired
  }

  async #gather(from: PeerConnection, snapshot: Snapshot): Promise<readonly PeerMetrics[]> {
    this.#take(from, snapshot)
    const others = [...this.#peers].filter(peer => peer !== from && peer.joined)
    await Promise.all(others.map(peer => this.#refresh(peer)))
    // Synchronous from here: metrics that a worker inherits meanwhile are counted exactly once.
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
      // The worker exits or is busy: its previous metrics count.
    }
  }

  #take(peer: PeerConnection, snapshot: Snapshot) {
    if (peer.last && peer.last.seq >= snapshot.seq) return
    peer.last = snapshot
    this.#retained = this.#retained.filter(item => item.successor !== peer || !snapshot.took.includes(item.id))
  }

  #leave(peer: PeerConnection) {
    this.#peers.delete(peer)
    this.#permits.forget(peer)
    for (const item of this.#retained) if (item.successor === peer) item.successor = undefined
    if (peer.last) this.#retained.push({ id: ++this.#ids, metrics: peer.last.metrics, successor: undefined })
    for (const other of this.#peers) other.end.workerExit(peer.id, contextOf(other)).catch(() => {})
    this.#assignRetained()
  }

  /** Hands retained metrics that no worker has inherited to the first worker that stays. */
  #assignRetained() {
    const successor = [...this.#peers].find(peer => peer.joined && peer.isSuccessor())
    if (!successor) return
    for (const item of this.#retained.filter(metrics => !metrics.successor)) {
      item.successor = successor
      const { id, metrics } = item
      const taken = successor.end.inherit({ id, metrics }, contextOf(successor))
      taken.then(snapshot => this.#take(successor, snapshot)).catch(() => this.#refused(item, successor))
    }
  }

  #refused(retainedMetrics: RetainedMetrics, successor: PeerConnection) {
    if (retainedMetrics.successor !== successor || !this.#peers.has(successor)) return
    retainedMetrics.successor = undefined
  }
}

/** Asks a worker; a name stands for one that has exited. Throws PEER_GONE, PEER_SILENT. */
const askPeer = (peer: PeerConnection | string, topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown> =>
  streamOf(peer, ({ end }) => end.answer(topic, message, ctx))

const NO_WORKER = 'of this server'

async function* streamOf<T>(
  peer: PeerConnection | string,
  open: (peer: PeerConnection) => AsyncIterable<T>
): AsyncGenerator<T, void> {
  if (typeof peer === 'string') throw peerGone(peer)
  try {
    yield* open(peer)
  } catch (error) {
    throw peer.channel.signal.aborted ? peerGone(peer.id, error) : error
  }
}

/** Whether the worker has handled the message. One that starts or exits meanwhile does not count. */
async function notifyPeer(peer: PeerConnection, message: PeerMessage, requestId: string, ms: number): Promise<boolean> {
  // A starting worker handles the message before it serves, so the sender need not wait for it.
  const taken = peer.end.message(message, contextOf(peer, requestId))
  if (!peer.joined) {
    taken.catch(() => {})
    return true
  }
  try {
    await inTime(taken, ms)
  } catch (error) {
    if (error === LATE) return false
    if (codeOf(error) !== 'PLUGIN_GONE') throw error
  }
  return true
}

const contextOf = ({ channel }: PeerConnection, requestId?: string) => systemContext(channel.signal, requestId)

const LATE = new Error('the worker did not answer in time')

/** Stops waiting, but does not abort the work: a busy worker can still finish it. */
const inTime = <T>(work: Promise<T>, ms: number): Promise<T> => withTimeout(ms, () => work, { late: () => LATE })
