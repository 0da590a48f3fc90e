import { codeOf, systemUse, type Use } from '@svc/core'
import type { Channel } from '../processes/channel.ts'
import { notTaken, peerGone } from './errors.ts'
import { type Ended, PeerDesk, PeerEnd, type PeerFigures, type PeerNews, type Snapshot } from './peer-words.ts'
import { Places } from './places.ts'

/** A worker at the desk. */
interface Seat {
  readonly id: string
  readonly pid: number
  readonly generation: number
  readonly channel: Channel
  readonly end: PeerEnd
  /** Serves for long yet: it may inherit. */
  readonly isHeir: () => boolean
  joined: boolean
  last: Snapshot | undefined
}
interface Estate extends Ended {
  heir: Seat | undefined
}

/** A worker that answers no gathering in this time is counted with what it told last. */
const GATHER_MS = 2_000
/** A blocked worker is killed after the hang limit; then nobody waits for it any more. */
const TELL_MS = 15_000
/** A worker that is blocked for longer keeps the places that it might leave. */
const WANT_MS = 1_000

/** Where the workers of one server meet: news for all, places for as many as there are, and figures that never fall, whoever dies. */
export class Desk {
  readonly #seats = new Set<Seat>()
  readonly #places = new Places<Seat>((seat, name) => inTime(seat.end.wanted(name, useOf(seat)), WANT_MS).catch(() => {}))
  #estates: Estate[] = []
  #ids = 0
  #names = 0

  /** Gives a worker its place; returns what is called when it has ended. */
  seat({ pid, generation }: Pick<Seat, 'pid' | 'generation'>, channel: Channel, isHeir: () => boolean): () => void {
    const id = `w${++this.#names}`
    const end = channel.reach('peer', PeerEnd)
    const seat: Seat = { id, pid, generation, channel, end, isHeir, joined: false, last: undefined }
    this.#seats.add(seat)
    channel.offer('peers', PeerDesk, {
      join: async () => this.#join(seat),
      tell: (news, use) => this.#tell(seat, news, use.requestId),
      push: async snapshot => this.#take(seat, snapshot),
      gather: snapshot => this.#gather(seat, snapshot),
      enter: (name, limit) => this.#enter(seat, name, limit),
      vacate: async name => this.#places.leave(seat, name),
      self: async () => id,
      ask: (worker, topic, message, use) => this.#ask(worker, topic, message, use),
    })
    return () => this.#leave(seat)
  }

  /** News of the supervisor itself for the workers of one generation. */
  announce(news: PeerNews, generation: number): void {
    for (const seat of this.#seats) if (seat.generation === generation) seat.end.told(news, useOf(seat)).catch(() => {})
  }

  #join(seat: Seat) {
    seat.joined = true
    this.#bequeath()
  }

  async #tell(from: Seat, news: PeerNews, requestId: string): Promise<void> {
    const others = [...this.#seats].filter(seat => seat !== from)
    await Promise.all(others.map(seat => tellOne(seat, news, requestId)))
  }

  async *#ask(worker: string, topic: string, message: unknown, use: Use): AsyncGenerator<unknown, void> {
    const seat = [...this.#seats].find(({ id }) => id === worker)
    if (!seat) throw peerGone(worker)
    try {
      yield* seat.end.answer(topic, message, use)
    } catch (error) {
      throw seat.channel.signal.aborted ? peerGone(worker, error) : error
    }
  }

  async #enter(seat: Seat, name: string, limit: number): Promise<boolean> {
    const entered = await this.#places.enter(seat, name, limit)
    if (!this.#seats.has(seat)) this.#places.forget(seat)
    return entered
  }

  async #gather(from: Seat, snapshot: Snapshot): Promise<readonly PeerFigures[]> {
    this.#take(from, snapshot)
    const others = [...this.#seats].filter(seat => seat !== from && seat.joined)
    await Promise.all(others.map(seat => this.#refresh(seat)))
    // all in one turn: what one worker inherits meanwhile is counted once, with it or without
    const rest = [...this.#seats].filter(seat => seat !== from)
    const living: PeerFigures[] = [from, ...rest].flatMap(({ last, generation }) =>
      last ? [{ ...last.figures, generation }] : []
    )
    return [...living, ...this.#estates.map(({ figures }) => ({ ...figures, ended: true }))]
  }

  async #refresh(seat: Seat): Promise<void> {
    try {
      this.#take(seat, await inTime(seat.end.figures(useOf(seat)), GATHER_MS))
    } catch {
      // it ends or is busy: its last figures count
    }
  }

  #take(seat: Seat, snapshot: Snapshot) {
    if (seat.last && seat.last.seq >= snapshot.seq) return
    seat.last = snapshot
    this.#estates = this.#estates.filter(one => one.heir !== seat || !snapshot.took.includes(one.id))
  }

  #leave(seat: Seat) {
    this.#seats.delete(seat)
    this.#places.forget(seat)
    for (const one of this.#estates) if (one.heir === seat) one.heir = undefined
    if (seat.last) this.#estates.push({ id: ++this.#ids, figures: seat.last.figures, heir: undefined })
    for (const other of this.#seats) other.end.gone(seat.pid, useOf(other)).catch(() => {})
    this.#bequeath()
  }

  /** What no living worker has taken yet goes to the first that stays. */
  #bequeath() {
    const heir = [...this.#seats].find(seat => seat.joined && seat.isHeir())
    if (!heir) return
    for (const one of this.#estates.filter(estate => !estate.heir)) {
      one.heir = heir
      const { id, figures } = one
      const taken = heir.end.inherit({ id, figures }, useOf(heir))
      taken.then(snapshot => this.#take(heir, snapshot)).catch(() => this.#refused(one, heir))
    }
  }

  #refused(one: Estate, heir: Seat) {
    if (one.heir !== heir || !this.#seats.has(heir)) return
    one.heir = undefined
  }
}

async function tellOne(seat: Seat, news: PeerNews, requestId: string): Promise<void> {
  // One that starts takes it before it serves, so nobody waits for it.
  const taken = seat.end.told(news, useOf(seat, requestId))
  if (!seat.joined) return void taken.catch(() => {})
  try {
    await inTime(taken, TELL_MS)
  } catch (error) {
    if (error === LATE) throw notTaken(seat.pid, news.topic, TELL_MS)
    if (codeOf(error) !== 'PLUGIN_GONE') throw error
  }
}

const useOf = ({ channel }: Seat, requestId?: string) => systemUse(channel.signal, requestId)

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
