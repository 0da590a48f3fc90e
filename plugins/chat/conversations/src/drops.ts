import type { CallContext } from '@svc/core'
import type { Json, PeerMessage, Peers } from '@svc/core/contracts'
import type { Turns } from './turns.ts'

/** Deletes a conversation that another worker is creating; the store does not have it yet. */
export interface Drops {
  /** Whether a worker was making this conversation, for this principal, and has dropped it. Throws UNAVAILABLE when one did not say so in time. */
  readonly elsewhere: (id: string, ctx: CallContext) => Promise<boolean>
  /** For a tap of `Peers.hooks.message`. */
  readonly onPeerMessage: (news: PeerMessage, ctx: CallContext) => Promise<void>
}

const DROP = 'conversations.drop'
const DROPPED = 'conversations.dropped'

interface Question {
  readonly question: string
  readonly id: string
  readonly principal: { readonly id: string; readonly scopes: readonly string[] }
}

// only this file, in this process or in another worker, sends messages under these topics
const questionIn = (message: Json) => message as unknown as Question

/** A telling has no answer, so the worker that drops it tells that before it has taken the question. */
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
      if (topic === DROPPED) open.delete(questionIn(message).question)
      if (topic !== DROP) return
      const { question, id, principal } = questionIn(message)
      if (await turns.drop(id, { ...ctx, principal })) await peers?.broadcast(DROPPED, { question }, ctx)
    },
  }
}
