import { type CallContext, withTimeout } from '@svc/core'
import type { Json, PeerMessage, Peers, ToolAnswer } from '@svc/core/contracts'
import { invalid, questionUnknown } from './errors.ts'

/** The answer of a user to a question. */
export interface PersonAnswer {
  readonly allow: boolean
  readonly reason?: string
  readonly content?: Exclude<ToolAnswer['content'], undefined>
}

/** Returns what is wrong with an answer; empty if it fits the question. */
export type AnswerCheck = (answer: PersonAnswer) => readonly string[]

/** Questions to the user who reads a stream. The answer can arrive at another worker. */
export interface Questions {
  /** Waits for the answer; `undefined` after the time limit. Throws the abort reason of `ctx.signal`. */
  ask(callId: string, waitMs: number, ctx: CallContext, check?: AnswerCheck): Promise<PersonAnswer | undefined>
  /** Passes the answer to the waiting turn. Throws QUESTION_UNKNOWN if no turn of this principal waits for it, and INVALID_VALUE if it does not fit. */
  answer(answer: ToolAnswer, ctx: CallContext): Promise<void>
  /** For a tap of `Peers.hooks.message`. */
  readonly onPeerMessage: (news: PeerMessage, ctx: CallContext) => Promise<void>
}

const ANSWER = 'chat.answer'
const TAKEN = 'chat.answer.taken'
const REASON = 1_000

/** An answer on its way to another worker. */
interface Posted {
  readonly posted: string
  readonly key: string
  readonly said: PersonAnswer
}

/** A worker has taken an answer, or has found it wrong. */
interface Taken {
  readonly posted: string
  readonly problems: readonly string[]
}

// only this file, in this process or in another worker, sends messages under these topics
const messageAs = <T>(message: Json) => message as unknown as T

interface OpenQuestion {
  readonly settle: (said: PersonAnswer) => void
  readonly check: AnswerCheck | undefined
}

/** The key contains the principal: only the principal of the turn can answer. */
const keyOf = (requestId: string, callId: string, { principal }: CallContext) => JSON.stringify([principal.id, requestId, callId])

/** A broadcast returns no result. So the worker that takes the answer broadcasts TAKEN before its handler returns. */
export function createQuestions(peers: Peers | undefined): Questions {
  const open = new Map<string, OpenQuestion>()
  /** Answers on their way to other workers, with the problems that one of them has found. */
  const posts = new Map<string, readonly string[] | undefined>()
  /** Returns the problems of an answer; undefined if no question of this worker waits for it. */
  const take = (key: string, said: PersonAnswer): readonly string[] | undefined => {
    const question = open.get(key)
    if (!question) return undefined
    const problems = question.check?.(said) ?? []
    if (problems.length > 0) return problems
    open.delete(key)
    question.settle(said)
    return []
  }
  /** The same for the questions of other workers. */
  const post = async (among: Peers, posted: string, key: string, said: PersonAnswer, ctx: CallContext) => {
    posts.set(posted, undefined)
    try {
      await among.broadcast(ANSWER, { posted, key, said: { ...said } }, ctx)
      return posts.get(posted)
    } finally {
      posts.delete(posted)
    }
  }
  return {
    async ask(callId, waitMs, ctx, check) {
      const key = keyOf(ctx.requestId, callId, ctx)
      if (open.has(key)) return { allow: false, reason: 'another question with the same id is open' }
      const { promise, resolve } = Promise.withResolvers<PersonAnswer>()
      const question = { settle: resolve, check }
      open.set(key, question)
      try {
        return await withTimeout(waitMs, () => promise, { signal: ctx.signal, late: () => NO_ANSWER })
      } catch (error) {
        if (error === NO_ANSWER) return undefined
        throw error
      } finally {
        if (open.get(key) === question) open.delete(key)
      }
    },
    async answer({ requestId, callId, allow, reason, content }, ctx) {
      const key = keyOf(requestId, callId, ctx)
      const said = {
        allow,
        ...(reason === undefined ? {} : { reason: reason.slice(0, REASON) }),
        ...(content === undefined ? {} : { content }),
      }
      const problems = take(key, said) ?? (peers && (await post(peers, crypto.randomUUID(), key, said, ctx)))
      if (problems === undefined) throw questionUnknown({ requestId, callId })
      if (problems.length > 0) throw invalid('content', problems.join('; '))
    },
    async onPeerMessage({ topic, message }, ctx) {
      if (topic === TAKEN) {
        const { posted, problems } = messageAs<Taken>(message)
        if (posts.has(posted)) posts.set(posted, problems)
      }
      if (topic !== ANSWER) return
      const { posted, key, said } = messageAs<Posted>(message)
      const problems = take(key, said)
      if (problems) await peers?.broadcast(TAKEN, { posted, problems }, ctx)
    },
  }
}

const NO_ANSWER = new Error('no answer in time')
