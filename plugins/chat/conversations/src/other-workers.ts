import { setTimeout as pause } from 'node:timers/promises'
import { type CallContext, withTimeout } from '@svc/core'
import type { Json, PeerMessage, Peers } from '@svc/core/contracts'
import { conversationBusy } from './errors.ts'
import { isMade } from './record.ts'
import type { Turns } from './turns.ts'

const ASK = 'conversations.ask'
const MAKING = 'conversations.making'
const MADE = 'conversations.made'
/** Minimum interval between two rounds of questions, however many unknown ids arrive. */
const PAUSE_MS = 20

interface Question {
  readonly question: string
  readonly id: string
  readonly principal: { readonly id: string; readonly scopes: readonly string[] }
}
/** The conversations that the worker `holder` is creating. */
interface Answer {
  readonly questions: readonly string[]
  readonly holder: string
}
interface Waiting {
  readonly id: string
  /** The worker that creates it. */
  holder: string | undefined
  readonly made: PromiseWithResolvers<void>
}

interface MakersOptions {
  readonly turns: Pick<Turns, 'made'>
  readonly peers: Peers | undefined
  /** Names this worker. */
  readonly holder: string
  readonly lasting: CallContext
}

// only this file, in this process or in another worker, sends messages under these topics
const messageAs = <T>(message: Json) => message as unknown as T

/**
 * Waits for conversations that other workers are creating. Only that worker knows such a conversation, so a worker that finds no record asks the others. A new conversation
 * costs nothing. An unknown id costs a round of questions, which all ids that arrive in the meantime share.
 */
export class Makers {
  readonly #parts: MakersOptions
  readonly #waiting = new Map<string, Waiting>()
  readonly #awaited = new Set<string>()
  #questions: Question[] = []
  #next: Promise<void> | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(parts: MakersOptions) {
    this.#parts = parts
  }

  /** Waits until no other worker is creating this conversation for this principal. Returns false if no worker can be asked. Throws CONVERSATION_BUSY, UNAVAILABLE. */
  async wait(id: string, waitMs: number, ctx: CallContext): Promise<boolean> {
    const { peers } = this.#parts
    if (!peers || !isMade(id)) return false
    const question = crypto.randomUUID()
    const waiting: Waiting = { id, holder: undefined, made: Promise.withResolvers() }
    this.#waiting.set(question, waiting)
    try {
      const { id: name, scopes } = ctx.principal
      await this.#ask(peers, { question, id, principal: { id: name, scopes } }).catch(error => {
        if (waiting.holder === undefined) throw error
      })
      const late = () => conversationBusy(id, waitMs)
      if (waiting.holder !== undefined) await withTimeout(waitMs, () => waiting.made.promise, { signal: ctx.signal, late })
      return true
    } finally {
      this.#waiting.delete(question)
    }
  }

  /** For a tap of `Peers.hooks.message`. */
  readonly onPeerMessage = async ({ topic, message }: PeerMessage, ctx: CallContext): Promise<void> => {
    if (topic === ASK) await this.#answer(messageAs<readonly Question[]>(message), ctx)
    if (topic === MAKING) this.#note(messageAs<Answer>(message))
    if (topic === MADE) this.#free(item => item.id === message)
  }

  /** For a tap of `Peers.hooks.workerExit`: the conversations that this worker was creating do not exist. */
  readonly gone = async ({ holder }: { readonly holder: string }): Promise<void> => this.#free(item => item.holder === holder)

  #ask(peers: Peers, question: Question): Promise<void> {
    this.#questions.push(question)
    this.#next ??= this.#last.then(() => {
      const questions = this.#questions.splice(0)
      this.#next = undefined
      this.#last = pause(PAUSE_MS, undefined, { ref: false })
      return peers.broadcast(ASK, questions as unknown as Json, this.#parts.lasting)
    })
    return this.#next
  }

  /** Peer messages have no answer, so this worker sends the conversations that it is creating before it confirms the questions, and later that they are stored. */
  async #answer(questions: readonly Question[], ctx: CallContext): Promise<void> {
    const { peers, turns, holder } = this.#parts
    const mine = questions.filter(({ id, principal }) => {
      const made = turns.made(id, { ...ctx, principal })
      if (made) this.#promise(id, made)
      return made !== undefined
    })
    if (mine.length > 0) await peers?.broadcast(MAKING, { questions: mine.map(question => question.question), holder }, ctx)
  }

  /** A worker that misses the message waits until its own limit. */
  #promise(id: string, made: Promise<void>) {
    if (this.#awaited.has(id)) return
    this.#awaited.add(id)
    const notify = () => {
      this.#awaited.delete(id)
      return this.#parts.peers?.broadcast(MADE, id, this.#parts.lasting)
    }
    made.then(notify).catch(() => {})
  }

  #note({ questions, holder }: Answer) {
    for (const question of questions) {
      const waiting = this.#waiting.get(question)
      if (waiting) waiting.holder = holder
    }
  }

  #free(isOver: (waiting: Waiting) => boolean) {
    for (const item of this.#waiting.values()) if (isOver(item)) item.made.resolve()
  }
}

/** Deletes a conversation that another worker is creating and that is not yet in the store. */
export interface Drops {
  /** Whether a worker was creating this conversation for this principal and has dropped it. Throws UNAVAILABLE if a worker did not answer in time. */
  readonly elsewhere: (id: string, ctx: CallContext) => Promise<boolean>
  /** For a tap of `Peers.hooks.message`. */
  readonly onPeerMessage: (news: PeerMessage, ctx: CallContext) => Promise<void>
}

const DROP = 'conversations.drop'
const DROPPED = 'conversations.dropped'

/** Peer messages have no answer, so the worker that drops it sends that before it confirms the question. */
export function createDrops(turns: Pick<Turns, 'drop'>, peers: Peers | undefined): Drops {
  const open = new Set<string>()
  const ask = async (among: Peers, question: string, id: string, ctx: CallContext) => {
    const { id: name, scopes } = ctx.principal
    open.add(question)
    try {
      await among.broadcast(DROP, { question, id, principal: { id: name, scopes } }, ctx)
      return !open.has(question)
    } finally {
      open.delete(question)
    }
  }
  return {
    elsewhere: async (id, ctx) => (peers ? ask(peers, crypto.randomUUID(), id, ctx) : false),
    async onPeerMessage({ topic, message }, ctx) {
      if (topic === DROPPED) open.delete(messageAs<Question>(message).question)
      if (topic !== DROP) return
      const { question, id, principal } = messageAs<Question>(message)
      if (await turns.drop(id, { ...ctx, principal })) await peers?.broadcast(DROPPED, { question }, ctx)
    },
  }
}
