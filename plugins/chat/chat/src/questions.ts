import { type CallContext, withTimeout } from '@svc/core'
import type { Json, PeerMessage, Peers, ToolAnswer } from '@svc/core/contracts'
import { questionUnknown } from './errors.ts'

/** What a person said. */
export interface Said {
  readonly allow: boolean
  readonly reason?: string
}

/** Questions to the person who reads a turn along. The one who answers may have reached another worker. */
export interface Questions {
  /** Waits for the answer; `undefined` when none came in time. Throws what `ctx.signal` aborted with. */
  ask(callId: string, waitMs: number, ctx: CallContext): Promise<Said | undefined>
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
  readonly said: Said
}

// only this file, in this process or in another worker, sends messages under these topics
const postedIn = (message: Json) => message as unknown as Posted

/** The principal is a part of it: who did not begin the turn asks for what is not there. */
const keyOf = (requestId: string, callId: string, { principal }: CallContext) => JSON.stringify([principal.id, requestId, callId])

/** A telling has no answer, so the worker that takes it tells that before it has taken the telling. */
export function createQuestions(peers: Peers | undefined): Questions {
  const open = new Map<string, (said: Said) => void>()
  const posts = new Set<string>()
  const take = (key: string, said: Said) => {
    const settle = open.get(key)
    open.delete(key)
    settle?.(said)
    return settle !== undefined
  }
  const post = async (among: Peers, posted: string, key: string, said: Said, ctx: CallContext) => {
    posts.add(posted)
    try {
      await among.broadcast(ANSWER, { posted, key, said: { ...said } }, ctx)
      return !posts.has(posted)
    } finally {
      posts.delete(posted)
    }
  }
  return {
    async ask(callId, waitMs, ctx) {
      const key = keyOf(ctx.requestId, callId, ctx)
      if (open.has(key)) return { allow: false, reason: 'another question with the same id is open' }
      const { promise, resolve } = Promise.withResolvers<Said>()
      open.set(key, resolve)
      try {
        return await withTimeout(waitMs, () => promise, { signal: ctx.signal, late: () => NOBODY })
      } catch (error) {
        if (error === NOBODY) return undefined
        throw error
      } finally {
        if (open.get(key) === resolve) open.delete(key)
      }
    },
    async answer({ requestId, callId, allow, reason }, ctx) {
      const key = keyOf(requestId, callId, ctx)
      const said = { allow, ...(reason === undefined ? {} : { reason: reason.slice(0, REASON) }) }
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

const NOBODY = new Error('no answer in time')
