import { type CallContext, codeOf, type Log } from '@svc/core'
import type {
  ChatQuestion,
  Json,
  RangeQuery,
  Space,
  Store,
  StoreOp,
  StoreRecord,
  ToolCallPart,
  TurnEvent,
} from '@svc/core/contracts'
import { type KeptLease, keepLease, openSpace } from '@svc/storage-kit'
import type { OpenDialog } from './tool-dialog.ts'

/** One record for each turn that waits for a person: its questions, and apart from them its state. */
const QUESTIONS = 'chat_waiting_turns'
const STATES = 'chat_waiting_states'

const SPACE: Space = {
  name: 'chat',
  version: 1,
  collections: {
    [QUESTIONS]: {
      indexes: { by_owner: ['owner', 'requestId'], by_conversation: ['conversationId'], by_expiry: ['expires'] },
    },
    [STATES]: {},
  },
}

/** A worker that exits has its leases released; those of a server that was killed expire. */
const LEASE_MS = 10_000
/** Milliseconds in which a claim waits for a lease, before it looks again. */
const CLAIM_MS = 500
const LOOK_MS = 100
const SWEEP_MS = 3_600_000
/** Characters of the events of a turn that are stored; the newest. */
const MOST_EVENTS = 1024 * 1024
const PAGE = 200

/** The stream of a turn in `TurnStreams`. */
export interface TurnJournal {
  readonly id: string
  /** The number of its events so far. */
  readonly count: number
  /** The latest events up to the number `to`, at most so many characters; `first` is the number of the first one. */
  events(to: number, limit: number): { readonly first: number; readonly events: readonly TurnEvent[] }
}

/** A question whether a tool call may run, or for the content of a form. */
export interface WaitingQuestion {
  readonly callId: string
  readonly tool: string
  readonly arguments: ToolCallPart['arguments']
  readonly question: string
  readonly since: number
  readonly until: number
  /** `until` in the event that was shown. A worker that continues the turn asks again, without a new event. */
  readonly shownUntil?: number
  /** A form, and the dialog with the tool that asks for it. */
  readonly form?: NonNullable<ChatQuestion['form']>
  readonly dialog?: OpenDialog
}
interface StoredQuestion extends WaitingQuestion {
  readonly isOpen: boolean
}

/** The record of a turn. Its key is the id of its stream. */
interface WaitingTurn {
  readonly owner: string
  readonly requestId: string
  readonly conversationId: string
  /** Unix milliseconds after which its questions cannot be answered. */
  readonly expires: number
  /** Those of the current step, in the order in which they were asked. */
  readonly questions: readonly StoredQuestion[]
}
type WaitingRecord = StoreRecord<WaitingTurn>

interface StoredState {
  readonly turn: Json
  readonly first: number
  readonly events: readonly TurnEvent[]
}

/** An interrupted turn that this worker has taken over. */
interface TakenTurn<T> {
  readonly id: string
  readonly requestId: string
  readonly prepared: T
  readonly first: number
  readonly events: readonly TurnEvent[]
  /** The question that was answered; absent when the turn is cancelled. */
  readonly answered: WaitingQuestion | undefined
  readonly questions: OpenTurnQuestions
}

interface WaitingOptions {
  readonly store: Store
  /** The prefix of its leases. */
  readonly holder: string
  /** How long the questions of an interrupted turn can be answered. */
  readonly keepMs: number
  readonly log: Log
  readonly lasting: CallContext
}

/**
 * The turns that wait for a person, in the store. The lease of a turn is held by the worker that runs it: each change of the
 * record has its fence, so of several answers only one counts, wherever they arrive.
 */
export interface WaitingTurns {
  /** The questions of a step of a turn. `state` is called with the first of them: what another worker needs to continue the turn. */
  open(journal: TurnJournal, about: TurnAbout, state: () => Json): OpenTurnQuestions
  /** The questions of this principal, or of all, whose worker has exited. `running`: turns that a worker is known to run. */
  interrupted(owner: string | undefined, running: ReadonlySet<string>, ctx: CallContext): Promise<readonly ChatQuestion[]>
  /** The id of the turn with this open question. */
  find(about: Pick<ChatQuestion, 'owner' | 'requestId' | 'callId'>, ctx: CallContext): Promise<string | undefined>
  /**
   * Takes over an interrupted turn, with the answer to one of its questions or to cancel it. `prepare` runs before; if it throws or
   * returns nothing, the turn goes on waiting. Undefined also for a turn that does not wait for this owner. Throws LEASE_BUSY while
   * another worker has the turn.
   */
  take<T>(id: string, wanted: WantedTurn<T>, ctx: CallContext): Promise<TakenTurn<T> | undefined>
  /** For a tap of `Conversations.hooks.deleted`: removes the turns of the conversation. */
  readonly onDeleted: (deleted: { readonly conversationId: string }) => Promise<void>
}

interface WantedTurn<T> {
  readonly owner: string
  /** The question that is answered. */
  readonly callId: string | undefined
  readonly prepare: (turn: Json, asked: WaitingQuestion | undefined) => Promise<T | undefined>
}

type TurnAbout = Pick<WaitingTurn, 'owner' | 'requestId' | 'conversationId'>

// only this file writes these collections
const asJson = (value: object): Json => value as unknown as Json
const waitingOf = (record: StoreRecord): WaitingRecord => record as unknown as WaitingRecord

/** Opens the collections of the turns. Expired ones are removed now and then; they cannot be answered before. */
export async function openWaitingTurns(options: WaitingOptions): Promise<WaitingTurns & Disposable> {
  const { store, log, lasting } = options
  await openSpace(store, SPACE, {}, lasting)
  const sweep = () => {
    const expired = range(store, { index: 'by_expiry', to: Date.now() }, lasting)
    expired
      .then(records => remove(store, records, lasting))
      .catch((err: unknown) => log.warn({ err }, 'failed to remove expired turns'))
  }
  sweep()
  const timer = setInterval(sweep, SWEEP_MS).unref()
  return { ...createWaitingTurns(options), [Symbol.dispose]: () => clearInterval(timer) }
}

function createWaitingTurns(options: WaitingOptions): WaitingTurns {
  const { store, holder, lasting } = options
  const isFree = async (id: string, ctx: CallContext) => {
    try {
      // another worker may look at the same time
      const lease = await keepLease(store, leaseOf(id), { holder: `${holder}list`, ttlMs: LEASE_MS, waitMs: LOOK_MS }, ctx)
      await lease[Symbol.asyncDispose]()
      return true
    } catch (error) {
      if (codeOf(error) === 'LEASE_BUSY') return false
      throw error
    }
  }
  return {
    open: (journal, about, state) => new OpenTurnQuestions(options, journal, about, state),

    async interrupted(owner, running, ctx) {
      const records = await range(
        store,
        owner === undefined ? { index: 'by_expiry' } : { index: 'by_owner', equals: [owner] },
        ctx
      )
      const others = records.filter(({ key, value }) => !running.has(key) && value.expires > Date.now())
      const free = await Promise.all(others.map(({ key }) => isFree(key, ctx)))
      return others.filter((_, at) => free[at]).flatMap(shownQuestions)
    },

    async find({ owner, requestId, callId }, ctx) {
      const records = await range(store, { index: 'by_owner', equals: [owner, requestId] }, ctx)
      return records.find(({ value }) => isWaiting(value, callId))?.key
    },

    async take(id, wanted, ctx) {
      const lease = await keepLease(store, leaseOf(id), { holder: `${holder}turn`, ttlMs: LEASE_MS, waitMs: CLAIM_MS }, lasting)
      const taken = await takeHeld(options, id, lease, wanted, ctx).catch(async (error: unknown) => {
        await lease[Symbol.asyncDispose]()
        throw error
      })
      if (!taken) await lease[Symbol.asyncDispose]()
      return taken
    },

    async onDeleted({ conversationId }) {
      const records = await range(store, { index: 'by_conversation', equals: [conversationId] }, lasting)
      await remove(store, records, lasting)
    },
  }
}

async function takeHeld<T>(
  options: WaitingOptions,
  id: string,
  lease: KeptLease,
  { owner, callId, prepare }: WantedTurn<T>,
  ctx: CallContext
): Promise<TakenTurn<T> | undefined> {
  const { store } = options
  const [found, stored] = await Promise.all([store.get(QUESTIONS, id, ctx), store.get(STATES, id, ctx)])
  if (!found || !stored) return undefined
  const record = waitingOf(found)
  const state = stored.value as unknown as StoredState
  if (record.value.owner !== owner || !isWaiting(record.value, callId)) return undefined
  const answered = callId === undefined ? undefined : openIn(record.value.questions, callId)
  const prepared = await prepare(state.turn, answered)
  if (prepared === undefined) return undefined
  const journal = { id, count: 0, events: () => state }
  const questions = new OpenTurnQuestions(options, journal, record.value, () => state.turn, { lease, record })
  await (callId === undefined ? questions.end() : questions.close(callId))
  const { requestId } = record.value
  return { id, requestId, prepared, first: state.first, events: eventsOf(state, record.value), answered, questions }
}

async function range(store: Store, query: Omit<RangeQuery, 'limit'>, ctx: CallContext): Promise<readonly WaitingRecord[]> {
  return (await store.range(QUESTIONS, { ...query, limit: PAGE }, ctx)).records.map(waitingOf)
}

/** Removes records that have not changed since. */
async function remove(store: Store, records: readonly WaitingRecord[], ctx: CallContext): Promise<void> {
  for (const { key, version } of records)
    await store.batch(removal(key, version), {}, ctx).catch((error: unknown) => {
      if (codeOf(error) !== 'STORE_CONFLICT') throw error
    })
}

const leaseOf = (id: string) => `chat/${id}`

const removal = (id: string, version?: number): StoreOp[] => [
  { op: 'delete', collection: QUESTIONS, key: id, ...(version === undefined ? {} : { ifVersion: version }) },
  { op: 'delete', collection: STATES, key: id },
]

/** The open question of a call. A call has at most one; it can have asked others before. */
const openIn = (questions: readonly StoredQuestion[], callId: string) =>
  questions.find(question => question.callId === callId && question.isOpen)

/** Whether this question of the turn, or any, can be answered. */
const isWaiting = ({ questions, expires }: WaitingTurn, callId: string | undefined) =>
  expires > Date.now() &&
  (callId === undefined ? questions.some(({ isOpen }) => isOpen) : openIn(questions, callId) !== undefined)

const shownQuestions = ({ key, value: { expires, questions, ...about } }: WaitingRecord): ChatQuestion[] =>
  questions
    .filter(({ isOpen }) => isOpen)
    .map(({ isOpen: _isOpen, dialog: _dialog, shownUntil: _shownUntil, ...question }) => ({
      ...about,
      ...question,
      until: expires,
      turnId: key,
      interrupted: true,
    }))

/** The events that the reader of the turn can have seen. */
const eventsOf = ({ events }: StoredState, { questions }: WaitingTurn): readonly TurnEvent[] => [
  ...events,
  ...questions.map(({ callId, tool, arguments: args, question, form, shownUntil }) => ({
    type: 'ask' as const,
    tool,
    callId,
    arguments: args,
    question,
    ...(form && { form }),
    ...(shownUntil !== undefined && { until: shownUntil }),
  })),
]

/** The stored questions of one step of a turn. Its changes take effect in order. */
export class OpenTurnQuestions {
  readonly #options: WaitingOptions
  readonly #journal: TurnJournal
  readonly #about: TurnAbout
  readonly #state: () => Json
  /** Events before the questions of the step. */
  readonly #count: number
  #questions: readonly StoredQuestion[]
  #lease: KeptLease | undefined
  #isStored: boolean
  #last: Promise<unknown> = Promise.resolve()

  constructor(
    options: WaitingOptions,
    journal: TurnJournal,
    { owner, requestId, conversationId }: TurnAbout,
    state: () => Json,
    taken?: { readonly lease: KeptLease; readonly record: WaitingRecord }
  ) {
    this.#options = options
    this.#journal = journal
    this.#about = { owner, requestId, conversationId }
    this.#state = state
    this.#count = journal.count
    this.#questions = taken?.record.value.questions ?? []
    this.#lease = taken?.lease
    this.#isStored = taken !== undefined
  }

  /** The question of this call that can still be answered. It is in the events of the turn. */
  open(callId: string): WaitingQuestion | undefined {
    return openIn(this.#questions, callId)
  }

  /**
   * Stores a question before it is shown. It replaces the open question of its call. Returns a signal that aborts with STORE_FENCED when another worker can take the turn;
   * undefined if the turn is too large to be stored.
   */
  add(question: WaitingQuestion): Promise<AbortSignal | undefined> {
    return this.#inOrder(async () => {
      const { store, holder, lasting, log } = this.#options
      const open = { ...question, isOpen: true }
      const again = openIn(this.#questions, question.callId)
      const questions = again ? this.#questions.map(one => (one === again ? open : one)) : [...this.#questions, open]
      const request = { holder: `${holder}turn`, ttlMs: LEASE_MS, waitMs: CLAIM_MS }
      this.#lease ??= await keepLease(store, leaseOf(this.#journal.id), request, lasting)
      try {
        await this.#write(questions)
      } catch (error) {
        if (codeOf(error) !== 'STORE_TOO_LARGE') throw error
        log.warn({ turn: this.#journal.id }, 'a turn that waits for a person is too large to be stored; it ends with its worker')
        return undefined
      }
      return this.#lease.ctx.signal
    })
  }

  /** A question is answered or late. Throws STORE_FENCED if another worker has taken the turn. */
  close(callId: string): Promise<void> {
    return this.#inOrder(async () => {
      if (!this.open(callId)) return
      await this.#write(this.#questions.map(one => (one.callId === callId ? { ...one, isOpen: false } : one)))
    })
  }

  /** The step is over: no question of it can be answered. */
  end(): Promise<void> {
    return this.#inOrder(async () => {
      if (!this.#lease) return
      await this.#write(this.#questions.map(one => ({ ...one, isOpen: false })))
    })
  }

  /** The same for a turn that ends in any way: errors are logged. */
  async leave(): Promise<void> {
    try {
      await this.end()
    } catch (error) {
      await this.#lease?.[Symbol.asyncDispose]()
      this.#options.log.warn({ err: error, turn: this.#journal.id }, 'failed to remove the stored questions of a turn')
    }
  }

  /** Writes the questions with the state, or removes both when none is open. */
  async #write(questions: readonly StoredQuestion[]): Promise<void> {
    const { store, lasting } = this.#options
    const { fence } = this.#lease!
    const ops = questions.some(({ isOpen }) => isOpen) ? this.#puts(questions) : removal(this.#journal.id)
    await store.batch(ops, { fence }, lasting)
    this.#questions = questions
    this.#isStored = questions.some(({ isOpen }) => isOpen)
    if (this.#isStored) return
    const lease = this.#lease
    this.#lease = undefined
    await lease?.[Symbol.asyncDispose]()
  }

  #puts(questions: readonly StoredQuestion[]): StoreOp[] {
    const { id } = this.#journal
    const expires = Math.max(...questions.map(({ since, until }) => Math.max(until, since + this.#options.keepMs)))
    const value = asJson({ ...this.#about, expires, questions })
    const puts: StoreOp[] = [{ op: 'put', collection: QUESTIONS, key: id, value }]
    if (this.#isStored) return puts
    const state = { turn: this.#state(), ...this.#journal.events(this.#count, MOST_EVENTS) }
    return [...puts, { op: 'put', collection: STATES, key: id, value: asJson(state) }]
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => undefined)
    return done
  }
}
