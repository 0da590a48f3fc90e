import { randomUUID } from 'node:crypto'
import { asSvcError, type CallContext, type SlotView, svcError, systemContext } from '@svc/core'
import type { Json, PeerAnswer } from '@svc/core/contracts'
import { peerGone, peerSilent } from './errors.ts'
import { checkSize, type Posts } from './posts.ts'
import type { CallError, CallPart, Post } from './space.ts'

/** A call of this worker that has not ended. */
interface OpenCall {
  readonly id: string
  readonly worker: string
  readonly parts: Map<number, CallPart>
  isGone: boolean
  wake(): void
}

interface CallDependencies {
  readonly self: string
  readonly posts: Posts
  readonly answers: SlotView<PeerAnswer>
  isMember(worker: string): Promise<boolean>
  readonly lasting: CallContext
}

/** The calls between this worker and other members: each part of a call is a post to one worker. */
export class BusCalls {
  readonly #parts: CallDependencies
  readonly #open = new Map<string, OpenCall>()
  /** The answers that this worker gives, by the id of the call. */
  readonly #answering = new Map<string, { readonly to: string; readonly ending: AbortController }>()

  constructor(parts: CallDependencies) {
    this.#parts = parts
  }

  /** Streams the answer of a member. Throws PEER_GONE, PEER_SILENT, and what the answer throws. */
  async *call(worker: string, topic: string, message: Json, ctx: CallContext): AsyncGenerator<Json, void> {
    checkSize(`the request for "${topic}"`, message)
    if (!(await this.#parts.isMember(worker))) throw peerGone(worker, false)
    const call: OpenCall = { id: randomUUID(), worker, parts: new Map(), isGone: false, wake() {} }
    this.#open.set(call.id, call)
    const wake = () => call.wake()
    ctx.signal.addEventListener('abort', wake, { once: true })
    const { id, scopes } = ctx.principal
    const by = { principal: { id, scopes: [...scopes] }, requestId: ctx.requestId }
    try {
      await this.#send(worker, { id: call.id, kind: 'ask', topic, message, by })
      yield* this.#read(call, ctx)
    } finally {
      ctx.signal.removeEventListener('abort', wake)
      const isUnread = this.#open.delete(call.id) && !call.isGone
      if (isUnread) await this.#send(worker, { id: call.id, kind: 'stop' }).catch(() => {})
    }
  }

  /** Takes a part of a call that is for this worker. */
  take({ from, call: part }: Post): void {
    if (!part) return
    if (part.kind === 'ask') return void this.#answer(from, part).catch(() => {})
    if (part.kind === 'stop') {
      const given = this.#answering.get(part.id)
      if (given?.to === from) given.ending.abort()
      return
    }
    const call = this.#open.get(part.id)
    if (call?.worker !== from) return
    call.parts.set(part.seq, part)
    call.wake()
  }

  /** Fails the calls to a worker that has gone, and stops the answers to it. */
  gone(worker: string): void {
    for (const call of this.#open.values()) {
      if (call.worker !== worker) continue
      call.isGone = true
      call.wake()
    }
    for (const { to, ending } of this.#answering.values()) if (to === worker) ending.abort()
  }

  #send(to: string, call: CallPart): Promise<void> {
    return this.#parts.posts.send({ to, call }, this.#parts.lasting)
  }

  async *#read(call: OpenCall, ctx: CallContext): AsyncGenerator<Json, void> {
    for (let seq = 0; ; ) {
      const part = call.parts.get(seq)
      call.parts.delete(seq)
      if (part?.kind === 'part') {
        seq += 1
        yield part.value
        continue
      }
      if (part?.kind === 'end') {
        this.#open.delete(call.id)
        if (part.error) throw svcError(part.error.code, part.error.message, { ...part.error })
        return
      }
      if (call.isGone) throw peerGone(call.worker, true)
      ctx.signal.throwIfAborted()
      await new Promise<void>(resolve => {
        call.wake = resolve
      })
    }
  }

  async #answer(to: string, { id, topic, message, by }: Extract<CallPart, { kind: 'ask' }>): Promise<void> {
    const { self, answers, lasting } = this.#parts
    const ending = new AbortController()
    this.#answering.set(id, { to, ending })
    const signal = AbortSignal.any([ending.signal, lasting.signal])
    const ctx: CallContext = { ...systemContext(signal, by.requestId), principal: by.principal }
    let seq = 0
    try {
      const found = answers.get(topic)
      if (!found) throw peerSilent(self, topic)
      for await (const value of found.answer(message, ctx)) {
        if (signal.aborted) return
        checkSize(`a part of the answer to "${topic}"`, value)
        await this.#send(to, { id, kind: 'part', seq: seq++, value })
      }
      await this.#send(to, { id, kind: 'end', seq })
    } catch (error) {
      if (!signal.aborted) await this.#send(to, { id, kind: 'end', seq, error: errorAsData(error) }).catch(() => {})
    } finally {
      this.#answering.delete(id)
    }
  }
}

function errorAsData(error: unknown): CallError {
  const { code, message, hint, details } = asSvcError(error, 'INTERNAL_ERROR')
  return { code, message, details: details as CallError['details'], ...(hint === undefined ? {} : { hint }) }
}
