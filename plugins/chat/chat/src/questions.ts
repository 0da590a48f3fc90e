import { type CallContext, withTimeout } from '@svc/core'
import type { Json, PeerMessage, Peers, ToolAnswer } from '@svc/core/contracts'
import { definedOf } from '@svc/plugin-kit'
import { questionUnknown } from './errors.ts'

/** The answer of a user to a question. */
export interface PersonAnswer {
  readonly allow: boolean
  readonly reason?: string
  /** The answers to input requests of a tool. */
  readonly answers?: ToolAnswer['answers']
}

/** Questions to the user who reads a stream. The answer can arrive at another worker. */
export interface Questions {
  /** Waits for the answer; `undefined` after the time limit. Throws the abort reason of `ctx.signal`. */
  ask(callId: string, waitMs: number, ctx: CallContext): Promise<PersonAnswer | undefined>
  /** Passes the answer to the waiting turn. Throws QUESTION_UNKNOWN if no turn of this principal waits for it. */
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

// only this file, in this process or in another worker, sends messages under these topics
const postedIn = (message: Json) => message as unknown as Posted

/** The key contains the principal: only the principal of the turn can answer. */
const keyOf = (requestId: string, callId: string, { principal }: CallContext) => JSON.stringify([principal.id, requestId, callId])

/** A broadcast returns no result. So the worker that takes the answer broadcasts TAKEN before its handler returns. */
export function createQuestions(peers: Peers | undefined): Questions {
  const open = new Map<string, (said: PersonAnswer) => void>()
  const posts = new Set<string>()
  const take = (key: string, said: PersonAnswer) => {
    const settle = open.get(key)
    open.delete(key)
    settle?.(said)
    return settle !== undefined
  }
  const post = async (among: Peers, posted: string, key: string, said: PersonAnswer, ctx: CallContext) => {
    posts.add(posted)
    try {
      await among.broadcast(ANSWER, { posted, key, said: said as unknown as Json }, ctx)
      return !posts.has(posted)
    } finally {
      posts.delete(posted)
    }
  }
  return {
    async ask(callId, waitMs, ctx) {
      const key = keyOf(ctx.requestId, callId, ctx)
      if (open.has(key)) return { allow: false, reason: 'another question with the same id is open' }
      const { promise, resolve } = Promise.withResolvers<PersonAnswer>()
      open.set(key, resolve)
      try {
        return await withTimeout(waitMs, () => promise, { signal: ctx.signal, late: () => NO_ANSWER })
      } catch (error) {
        if (error === NO_ANSWER) return undefined
        throw error
      } finally {
        if (open.get(key) === resolve) open.delete(key)
      }
    },
    async answer({ requestId, callId, allow, reason, answers }, ctx) {
      const key = keyOf(requestId, callId, ctx)
      const more = definedOf({ reason: reason?.slice(0, REASON), answers })
      const said = { allow, ...more }
      if (take(key, said)) return
      if (!peers || !(await post(peers, crypto.randomUUID(), key, said, ctx))) throw questionUnknown({ requestId, callId })
    },
    async onPeerMessage({ topic, message }, ctx) {
      if (topic === TAKEN) posts.delete(postedIn(message).posted)
      if (topic !== ANSWER) return
      const { posted, key, said } = postedIn(message)
      if (take(key, said)) await peers?.broadcast(TAKEN, { posted }, ctx)
    },
  }
}

const NO_ANSWER = new Error('no answer in time')
