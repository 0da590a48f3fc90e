import { type CallContext, codeOf, createYielder } from '@svc/core'
import type { Json, PeerAnswer, PeerMessage, Peers, TurnEvent, TurnStreams } from '@svc/core/contracts'
import type { TurnRunner } from './chat.ts'
import { afterInvalid, tooManyUnread, turnCancelled, turnEventsLost, turnUnknown } from './errors.ts'
import type { TurnJournal } from './waiting-turns.ts'

/** The topic of the item in the slot `PeerAnswers`. */
export const TOPIC = 'chat.turns'

/** Characters of the events of one turn, and of all turns of this worker. The oldest events go first. */
const MOST_OF_TURN = 8 * 1024 * 1024
const MOST_IN_ALL = 64 * 1024 * 1024
/** Turns of one principal that continue without a reader. A further one is cancelled. */
const MOST_UNREAD = 50
/** Estimated memory of an event besides its text, in characters. */
const OVERHEAD = 64

interface TurnStreamsOptions {
  readonly chat: Pick<TurnRunner, 'begin'>
  readonly peers: Peers | undefined
  /** The name of this worker. */
  readonly worker: string
  readonly resumeMs: number
}

/** The service, with what the plugin adds for other workers and for the shutdown. */
interface TurnStreamsParts {
  readonly streams: TurnStreams
  readonly answer: PeerAnswer
  readonly onPeerMessage: (news: PeerMessage, ctx: CallContext) => Promise<void>
  readonly interrupted: InterruptedStreams
  /**
   * Waits for turns that continue without a reader, at most `limitMs`, then cancels them. With a successor it also waits until
   * their events can be forgotten.
   */
  readonly drain: (how: { readonly limitMs?: number; readonly successor: boolean }) => Promise<void>
}

/** Streams of turns whose workers have exited. */
export interface InterruptedStreams {
  /** Throws UNAVAILABLE if this principal has no room for a turn without a reader. */
  check(owner: string): void
  /** Continues such a turn in this worker, without a reader, after the events of that worker. */
  begin(
    stream: { readonly id: string; readonly owner: string; readonly first: number; readonly events: readonly TurnEvent[] },
    open: (journal: TurnJournal, signal: AbortSignal) => AsyncIterable<TurnEvent>
  ): void
}

/** A question to the worker of a turn. */
type TurnQuestion =
  | { readonly do: 'resume'; readonly turn: string; readonly after: number }
  | { readonly do: 'cancel'; readonly turn: string }

export function createTurnStreams({ chat, peers, worker, resumeMs }: TurnStreamsOptions): TurnStreamsParts {
  const turns = new Map<string, StreamedTurn>()
  const memory = createMemory(turns)
  const reach = createReach(turns, peers, worker)
  const options: StreamedTurnOptions = {
    resumeMs,
    memory,
    mayContinue: owner => unreadOf(turns, owner) <= MOST_UNREAD,
    forget: id => void turns.delete(id),
  }
  /** A turn of this worker. Throws TURN_UNKNOWN. */
  const own = (id: string, ctx: CallContext): StreamedTurn => {
    const turn = turns.get(id)
    if (turn?.owner !== ctx.principal.id) throw turnUnknown(id)
    return turn
  }
  const isHere = (id: string) => turns.has(id)
  const streams: TurnStreams = {
    begin(request, { detach = false }, ctx) {
      const turn = new StreamedTurn(idFor(worker), ctx.principal.id, detach, options)
      return turn.begin(signal => chat.begin(request, turn, { ...ctx, signal }), turns, ctx)
    },
    async *resume(id, after, ctx) {
      if (isHere(id)) yield* own(id, ctx).follow(after, ctx.signal)
      else yield* reach.ask({ do: 'resume', turn: id, after }, ctx) as AsyncIterable<unknown> as AsyncIterable<TurnEvent>
    },
    async cancel(id, ctx) {
      if (isHere(id)) own(id, ctx).cancel('the client cancelled the turn')
      else for await (const _ of reach.ask({ do: 'cancel', turn: id }, ctx));
    },
  }
  return {
    streams,
    onPeerMessage: reach.onPeerMessage,
    interrupted: createInterruptedStreams(turns, options),
    answer: {
      async *answer(message, ctx) {
        const question = message as unknown as TurnQuestion
        const turn = own(question.turn, ctx)
        if (question.do === 'cancel') turn.cancel('the client cancelled the turn')
        else yield* turn.follow(question.after, ctx.signal) as AsyncIterable<unknown> as AsyncIterable<Json>
      },
    },
    async drain({ limitMs = Number.POSITIVE_INFINITY, successor }) {
      const until = performance.now() + limitMs
      const rest = () => [...turns.values()].filter(turn => (successor ? turn.isWanted : !turn.isOver))
      for (let open = rest(); open.length > 0 && performance.now() < until; open = rest())
        await Promise.race([Promise.all(open.map(turn => turn.gone)), sleepUntil(until)])
      for (const turn of turns.values()) turn.cancel('the server stops')
      await Promise.all([...turns.values()].map(turn => turn.over))
    },
  }
}

const unreadOf = (turns: ReadonlyMap<string, StreamedTurn>, owner: string): number =>
  [...turns.values()].filter(turn => turn.owner === owner && turn.isUnread).length

const createInterruptedStreams = (turns: Map<string, StreamedTurn>, options: StreamedTurnOptions): InterruptedStreams => ({
  check(owner) {
    if (unreadOf(turns, owner) >= MOST_UNREAD) throw tooManyUnread(MOST_UNREAD)
  },
  begin({ id, owner, first, events }, open) {
    const turn = new StreamedTurn(id, owner, true, options)
    turns.set(id, turn)
    turn.continue(signal => open(turn, signal), first, events)
  },
})

const FIND = 'chat.turns.find'
const FOUND = 'chat.turns.found'

/** Reaches turns of other workers. */
function createReach(turns: ReadonlyMap<string, StreamedTurn>, peers: Peers | undefined, worker: string) {
  const finding = new Map<string, string | undefined>()
  /** The worker that has continued a turn. It sends its name before its handler returns. */
  const find = async (among: Peers, turn: string, ctx: CallContext): Promise<string | undefined> => {
    const asked = crypto.randomUUID()
    finding.set(asked, undefined)
    try {
      await among.broadcast(FIND, { asked, turn }, ctx)
      return finding.get(asked)
    } finally {
      finding.delete(asked)
    }
  }
  return {
    /** Asks the worker of a turn: the one that its id names, else another that has continued it. Throws TURN_UNKNOWN. */
    async *ask(question: TurnQuestion, ctx: CallContext): AsyncGenerator<Json, void> {
      const named = workerOf(question.turn)
      if (!peers || named === undefined || named === worker) throw turnUnknown(question.turn)
      let isFirst = true
      for (let other: string | undefined = named; other !== undefined; )
        try {
          for await (const item of peers.ask(other, TOPIC, question, ctx)) {
            isFirst = false
            yield item
          }
          return
        } catch (error) {
          if (!['PEER_GONE', 'PEER_SILENT'].includes(codeOf(error) ?? '')) throw error
          other = isFirst && other === named ? await find(peers, question.turn, ctx) : undefined
        }
      throw turnUnknown(question.turn)
    },
    onPeerMessage: async ({ topic, message }: PeerMessage, ctx: CallContext): Promise<void> => {
      if (topic !== FIND && topic !== FOUND) return
      // only this function sends these messages
      const { asked, turn, found } = message as unknown as {
        readonly asked: string
        readonly turn: string
        readonly found: string
      }
      if (topic === FOUND && finding.has(asked)) finding.set(asked, found)
      if (topic === FIND && turns.has(turn)) await peers?.broadcast(FOUND, { asked, turn, found: worker }, ctx)
    },
  }
}

const LONGEST_SLEEP_MS = 1_000
const sleepUntil = (until: number) =>
  new Promise<void>(resolve => setTimeout(resolve, Math.min(LONGEST_SLEEP_MS, Math.max(0, until - performance.now()))))

// The id names the worker of the turn, so that any worker can ask it.

const idFor = (worker: string) => `turn_${crypto.randomUUID().replaceAll('-', '')}_${Buffer.from(worker).toString('base64url')}`

function workerOf(id: string): string | undefined {
  const [, name] = /^turn_[0-9a-f]{32}_([\w-]{1,400})$/.exec(id) ?? []
  return name === undefined ? undefined : Buffer.from(name, 'base64url').toString()
}

/** Whether a turn can have this id. */
export const isTurnId = (id: string): boolean => workerOf(id) !== undefined

/** Limits the events in memory over all turns. */
function createMemory(turns: ReadonlyMap<string, StreamedTurn>) {
  let held = 0
  return {
    add(size: number) {
      held += size
      if (held <= MOST_IN_ALL) return
      // turns that began first, and those that have ended before others
      const byAge = [...turns.values()].sort((a, b) => Number(b.isOver) - Number(a.isOver))
      for (const turn of byAge) {
        if (held <= MOST_IN_ALL / 2) return
        turn.shed()
      }
    },
    release: (size: number) => void (held -= size),
  }
}

interface StreamedTurnOptions {
  readonly resumeMs: number
  readonly memory: ReturnType<typeof createMemory>
  /** Whether a turn of this principal may continue without a reader. */
  readonly mayContinue: (owner: string) => boolean
  readonly forget: (id: string) => void
}

/** A client that misses the end of a stream connects again in less: its first pause is a second at most. */
const ON_THE_WAY_MS = 3_000

/** The end of a turn is read also after it was aborted. */
const ENDLESS = new AbortController().signal

/** A turn, its latest events, and those who read it. */
class StreamedTurn implements TurnJournal {
  readonly id: string
  readonly owner: string
  readonly #detach: boolean
  readonly #options: StreamedTurnOptions
  readonly #stop = new AbortController()
  readonly #over = Promise.withResolvers<void>()
  readonly #gone = Promise.withResolvers<void>()
  #events: TurnEvent[] = []
  /** The number of the first event in memory, and the size of all there. */
  #first = 1
  #size = 0
  #source: AsyncIterator<TurnEvent> | undefined
  /** The event for which the first reader waits, or waited last. */
  #pending: Promise<unknown> | undefined
  /** Whether the turn goes on by itself. Before, its first reader drives it. */
  #isDriven = false
  #readers = 0
  #isRead = false
  #failure: { readonly error: unknown } | undefined
  #timer: NodeJS.Timeout | undefined
  #endedAt = 0
  #waiting = new Set<() => void>()
  isOver = false

  constructor(id: string, owner: string, detach: boolean, options: StreamedTurnOptions) {
    this.id = id
    this.owner = owner
    this.#detach = detach
    this.#options = options
  }

  /** Resolves when the turn has ended. */
  get over(): Promise<void> {
    return this.#over.promise
  }
  /** Resolves when the turn cannot be read any more. */
  get gone(): Promise<void> {
    return this.#gone.promise
  }
  get isUnread(): boolean {
    return !this.isOver && this.#readers === 0
  }
  /** The number of the latest event. */
  get count(): number {
    return this.#first + this.#events.length - 1
  }
  /** Whether somebody may come back for its events: also a reader whose connection broke before the last ones had arrived. */
  get isWanted(): boolean {
    return !this.isOver || !this.#isRead || performance.now() - this.#endedAt < ON_THE_WAY_MS
  }

  /** The stream of the first reader, who drives the turn as long as it reads. `registry` has the turn from its start event on. */
  async *begin(
    open: (signal: AbortSignal) => AsyncIterable<TurnEvent>,
    registry: Map<string, StreamedTurn>,
    ctx: CallContext
  ): AsyncGenerator<TurnEvent, void> {
    const left = () => this.#left(ctx.signal.reason)
    const source = (this.#source = open(this.#stop.signal)[Symbol.asyncIterator]())
    this.#readers = 1
    ctx.signal.addEventListener('abort', left, { once: true })
    if (ctx.signal.aborted) left()
    let count = 0
    try {
      while (!this.#isDriven) {
        const { done, value } = await (this.#pending = source.next())
        if (done) break
        count += 1
        const event = value.type === 'start' ? { ...value, turnId: this.id } : value
        if (value.type === 'start') registry.set(this.id, this)
        this.#add(event)
        yield event
      }
      if (this.#isDriven) yield* this.#from(count, ctx.signal)
      else this.#end()
      this.#isRead = true
    } catch (error) {
      if (!this.#isDriven) this.#end(error)
      throw error
    } finally {
      ctx.signal.removeEventListener('abort', left)
      if (!ctx.signal.aborted) this.#leave()
      if (!this.isOver) this.#drive()
    }
  }

  /** Continues a turn of a worker that has exited. */
  continue(open: (signal: AbortSignal) => AsyncIterable<TurnEvent>, first: number, events: readonly TurnEvent[]): void {
    this.#first = first
    for (const event of events) this.#add(event)
    this.#source = open(this.#stop.signal)[Symbol.asyncIterator]()
    this.#drive()
  }

  events(to: number, limit: number): { readonly first: number; readonly events: readonly TurnEvent[] } {
    const kept: TurnEvent[] = []
    let left = limit
    for (let at = to - this.#first; at >= 0 && left > 0; at--) {
      const event = this.#events[at]!
      left -= sizeOf(event)
      if (left >= 0) kept.push(event)
    }
    return { first: to - kept.length + 1, events: kept.reverse() }
  }

  /** The events after a number. Throws TURN_EVENTS_LOST, INVALID_VALUE. */
  async *follow(after: number, signal: AbortSignal): AsyncGenerator<TurnEvent, void> {
    const last = this.count
    if (!Number.isInteger(after) || after < 0 || after > last) throw afterInvalid(after, last)
    this.#readers += 1
    if (!this.isOver) clearTimeout(this.#timer)
    // the first reader may be gone without a sign of it: the turn must not wait for it
    this.#drive()
    try {
      yield* this.#from(after, signal)
      this.#isRead = true
    } finally {
      this.#leave()
    }
  }

  cancel(why: string): void {
    this.#stop.abort(turnCancelled(why))
    this.#drive()
  }

  /** Drops the older half of the events. */
  shed(): void {
    const dropped = this.#events.splice(0, Math.ceil(this.#events.length / 2))
    this.#first += dropped.length
    this.#release(dropped.reduce((sum, event) => sum + sizeOf(event), 0))
  }

  async *#from(after: number, signal: AbortSignal): AsyncGenerator<TurnEvent, void> {
    for (let next = after + 1; ; ) {
      if (next < this.#first) throw turnEventsLost(after, this.#first)
      for (; next < this.#first + this.#events.length; next++) yield this.#events[next - this.#first]!
      if (next < this.#first) continue
      if (this.#failure) throw this.#failure.error
      if (this.isOver) return
      await this.#changed(signal)
      if (signal.aborted) throw signal.reason
    }
  }

  /** Resolves with the next event, the end, or the abort of the signal. */
  async #changed(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = () => resolve()
    this.#waiting.add(wake)
    signal.addEventListener('abort', wake)
    if (signal.aborted) wake()
    await promise
    this.#waiting.delete(wake)
    signal.removeEventListener('abort', wake)
  }

  /** Reads the turn to its end, with or without readers. */
  #drive(): void {
    if (this.#isDriven || !this.#source) return
    this.#isDriven = true
    const source = this.#source
    const read = async () => {
      const yielder = createYielder(ENDLESS)
      await this.#pending?.catch(() => {})
      for (;;) {
        const { done, value } = await source.next()
        if (done) return
        this.#add(value)
        if (yielder.isDue()) await yielder.take()
      }
    }
    read().then(
      () => this.#end(),
      (error: unknown) => this.#end(error)
    )
  }

  #add(event: TurnEvent): void {
    const size = sizeOf(event)
    this.#events.push(event)
    this.#size += size
    if (this.#size > MOST_OF_TURN) this.shed()
    this.#options.memory.add(size)
    this.#wake()
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve()
  }

  #end(...failure: [error?: unknown]): void {
    if (this.isOver) return
    this.isOver = true
    this.#endedAt = performance.now()
    if (failure.length > 0) this.#failure = { error: failure[0] }
    this.#over.resolve()
    this.#wake()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#forget(), this.#options.resumeMs).unref()
  }

  #forget(): void {
    this.#options.forget(this.id)
    this.#release(this.#size)
    this.#events = []
    this.#gone.resolve()
  }

  #release(size: number): void {
    this.#size -= size
    this.#options.memory.release(size)
  }

  /** The first reader has gone, or the server stops. */
  #left(reason: unknown): void {
    if (codeOf(reason) === 'UNAVAILABLE') this.#stop.abort(reason)
    this.#leave(reason)
  }

  #leave(reason?: unknown): void {
    this.#readers -= 1
    if (this.#readers > 0 || this.isOver) return
    const { resumeMs, mayContinue } = this.#options
    const isKnown = this.#first + this.#events.length > 1
    // the error is made when it is needed: its stack costs as much as three tokens, and most readers leave at the end
    const stop = () => this.#stop.abort(reason ?? turnCancelled('the reader left'))
    if (!mayContinue(this.owner)) return stop()
    if (this.#detach) return
    if (resumeMs === 0 || !isKnown) return stop()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(stop, resumeMs).unref()
  }
}

const sizeOf = (event: TurnEvent): number =>
  OVERHEAD + (event.type === 'token' || event.type === 'reasoning' ? event.content.length : JSON.stringify(event).length)
