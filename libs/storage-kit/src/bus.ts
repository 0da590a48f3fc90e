import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import {
  asSvcError,
  type CallContext,
  codeOf,
  type HookCallers,
  Host,
  type Log,
  type Scope,
  type SlotView,
  svcError,
  type SvcError,
  systemContext,
  withTimeout,
} from '@svc/core'
import type { BusMember, BusMessage, Json, NodeBus, NodeBusHooks, PeerAnswer } from '@svc/core/contracts'
import { storeUnavailable } from './errors.ts'
import { follow } from './follow.ts'

// What every bus between the workers of a cluster (`NodeBus`) does in the same way.

/** Most bytes of the JSON of a message or of a part of an answer. */
const LARGEST = 64 * 1024
/** Most bytes of the facts of a member. */
export const MOST_FACTS = 4 * 1024

const jsonBytes = (value: Json): number => Buffer.byteLength(JSON.stringify(value) ?? '')

/** Throws BUS_TOO_LARGE. */
export function checkSize(what: string, value: Json, limit = LARGEST): void {
  const bytes = jsonBytes(value)
  if (bytes > limit) throw busTooLarge(what, bytes, limit)
}

/** A call of this worker that has not ended. */
interface OpenCall {
  readonly id: string
  readonly worker: string
  readonly parts: Map<number, CallPart>
  isGone: boolean
  wake(): void
}

export interface BusCallsOptions {
  readonly self: string
  /** Sends a part of a call to a member. Parts arrive in the order of the calls. */
  send(to: string, part: CallPart): Promise<void>
  readonly answers: SlotView<PeerAnswer>
  isMember(worker: string): Promise<boolean>
  readonly lasting: CallContext
}

/** Why an answer is aborted whose reader reads no further. */
const STOPPED = new Error('the reader reads no further')

/** The calls between this worker and other members: each part of a call is a post to one worker. */
export class BusCalls {
  readonly #parts: BusCallsOptions
  readonly #open = new Map<string, OpenCall>()
  /** The answers that this worker gives, by the id of the call. */
  readonly #answering = new Map<string, { readonly to: string; readonly ending: AbortController }>()

  constructor(parts: BusCallsOptions) {
    this.#parts = parts
  }

  /** Streams the answer of a member. Throws PEER_GONE, PEER_SILENT, and what the answer throws. */
  async *call(worker: string, topic: string, message: Json, ctx: CallContext): AsyncGenerator<Json, void> {
    checkSize(`the request for "${topic}"`, message)
    // open before the check, so that it hears of a worker that goes meanwhile
    const call: OpenCall = { id: randomUUID(), worker, parts: new Map(), isGone: false, wake() {} }
    this.#open.set(call.id, call)
    const wake = () => call.wake()
    ctx.signal.addEventListener('abort', wake, { once: true })
    const { id, scopes } = ctx.principal
    const by = { principal: { id, scopes: [...scopes] }, requestId: ctx.requestId }
    let isAsked = false
    try {
      call.isGone ||= !(await this.#parts.isMember(worker))
      if (call.isGone) throw peerGone(worker, false)
      isAsked = true
      await this.#send(worker, { id: call.id, kind: 'ask', topic, message, by })
      yield* this.#read(call, ctx)
    } finally {
      ctx.signal.removeEventListener('abort', wake)
      const isUnread = this.#open.delete(call.id)
      if (isAsked && isUnread) await this.#send(worker, { id: call.id, kind: 'stop' }).catch(() => {})
    }
  }

  /** Takes a part of a call that is for this worker. */
  take(from: string, part: CallPart): void {
    if (part.kind === 'ask') return void this.#answer(from, part).catch(() => {})
    if (part.kind === 'stop') {
      const given = this.#answering.get(part.id)
      if (given?.to === from) given.ending.abort(STOPPED)
      return
    }
    const call = this.#open.get(part.id)
    if (call?.worker !== from) return
    call.parts.set(part.seq, part)
    call.wake()
  }

  /** As `gone` for all workers: this worker has missed parts. */
  reset(): void {
    const others = [...this.#open.values(), ...this.#answering.values()].map(item => ('worker' in item ? item.worker : item.to))
    for (const worker of new Set(others)) this.gone(worker)
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

  /** A bus does not return to a worker what it sends, so a part for this worker itself takes the short way. */
  async #send(to: string, part: CallPart): Promise<void> {
    if (to !== this.#parts.self) return this.#parts.send(to, part)
    await setImmediate()
    this.take(to, structuredClone(part))
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
        signal.throwIfAborted()
        checkSize(`a part of the answer to "${topic}"`, value)
        await this.#send(to, { id, kind: 'part', seq: seq++, value })
      }
      signal.throwIfAborted()
      await this.#send(to, { id, kind: 'end', seq })
    } catch (error) {
      if (lasting.signal.aborted || ending.signal.reason === STOPPED) return
      // an answer that was cut short must not look whole
      const shown = errorAsData(ending.signal.aborted ? peerGone(self, true) : error)
      await this.#send(to, { id, kind: 'end', seq, error: shown }).catch(() => {})
    } finally {
      this.#answering.delete(id)
    }
  }
}

function errorAsData(error: unknown): CallError {
  const { code, message, hint, details } = asSvcError(error, 'INTERNAL_ERROR')
  return { code, message, details: details as CallError['details'], ...(hint === undefined ? {} : { hint }) }
}

/** The members as a worker knows them. It reports each difference to the taps of `NodeBus`, one after the other. */
export class KnownMembers {
  readonly #self: string
  readonly #hooks: HookCallers<NodeBusHooks>
  readonly #lasting: CallContext
  readonly #log: Log
  readonly #gone: (worker: string) => void
  #members: ReadonlyMap<string, Omit<BusMember, 'worker'>> = new Map()
  #turn: Promise<unknown> = Promise.resolve()

  constructor({ self, hooks, lasting, log, gone }: KnownMembersOptions) {
    this.#self = self
    this.#hooks = hooks
    this.#lasting = lasting
    this.#log = log
    this.#gone = gone
  }

  has(worker: string): boolean {
    return this.#members.has(worker)
  }

  /** The members now. Calls to those that have gone fail at once; the taps hear of all differences in order. */
  set(next: ReadonlyMap<string, Omit<BusMember, 'worker'>>): void {
    const before = this.#members
    this.#members = next
    for (const [worker, { node, facts }] of next) {
      const known = before.get(worker)
      const isSame = known !== undefined && JSON.stringify(known.facts) === JSON.stringify(facts)
      if (worker !== this.#self && !isSame) this.#inOrder(() => this.#hooks.joined({ worker, node, facts }, this.#lasting))
    }
    for (const [worker, { node }] of before) {
      if (next.has(worker) || worker === this.#self) continue
      this.#gone(worker)
      this.#inOrder(() => this.#hooks.gone({ worker, node, holder: `${worker}/` }, this.#lasting))
    }
  }

  /** One member now; undefined if it has gone. */
  change(worker: string, member: Omit<BusMember, 'worker'> | undefined): void {
    const next = new Map(this.#members)
    if (member === undefined) next.delete(worker)
    else next.set(worker, member)
    this.set(next)
  }

  /** Reports a message to the taps. */
  message(message: BusMessage): void {
    this.#inOrder(() => this.#hooks.message(message, this.#lasting))
  }

  /** Reports to the taps that messages of this worker, or of any, can be lost. */
  missed(from?: string): void {
    this.#inOrder(() => this.#hooks.missed({ from }, this.#lasting))
  }

  #inOrder(work: () => Promise<unknown>): void {
    this.#turn = this.#turn.then(work).catch((err: unknown) => this.#log.warn({ err }, 'a tap of the bus failed'))
  }
}

export interface KnownMembersOptions {
  readonly self: string
  readonly hooks: HookCallers<NodeBusHooks>
  readonly lasting: CallContext
  readonly log: Log
  /** Runs at once, before the taps hear of it. */
  readonly gone: (worker: string) => void
}

/** A part of a call, by its id: the question, a part of the answer by its number, its end, or that the caller reads no further. */
export type CallPart = { readonly id: string } & (
  | { readonly kind: 'ask'; readonly topic: string; readonly message: Json; readonly by: Asker }
  | { readonly kind: 'part'; readonly seq: number; readonly value: Json }
  | { readonly kind: 'end'; readonly seq: number; readonly error?: CallError }
  | { readonly kind: 'stop' }
)

/** Who asks, for the context of the answer. */
interface Asker {
  readonly principal: { readonly id: string; readonly scopes: readonly string[] }
  readonly requestId: string
}

/** An error as data. */
export interface CallError {
  readonly code: string
  readonly message: string
  readonly hint?: string
  readonly details: { readonly [key: string]: Json | undefined }
}

export const busTooLarge = (what: string, bytes: number, limit: number): SvcError =>
  svcError('BUS_TOO_LARGE', `${what} has ${bytes} bytes, more than the limit of ${limit}`, {
    details: { bytes, limit },
    hint: 'Write large data to the store, and send its key',
  })

export const peerGone = (worker: string, reached: boolean): SvcError =>
  svcError('PEER_GONE', `worker ${worker} is not a member of the cluster, or has ended`, {
    details: { worker, retryable: true, reached },
    hint: 'Try again: another worker may have taken over. If it fails again, start the request anew',
  })

export const peerSilent = (worker: string, topic: string): SvcError =>
  svcError('PEER_SILENT', `worker ${worker} has no handler for the topic "${topic}"`, {
    details: { worker, topic },
    hint: 'Install the same plugins on all servers of the cluster, and run `svc reload`',
  })

export const notJoined = (worker: string): SvcError =>
  svcError('BUS_NOT_JOINED', `worker ${worker} has not joined the bus`, {
    details: { worker },
    hint: 'Call join of NodeBus first',
  })

/** A bus of one worker that is open: it can also remove a member of the same server that has exited. */
export interface OpenBus extends NodeBus {
  exited(worker: string, ctx: CallContext): Promise<void>
}

/** A server that cannot join the bus ends soon, so that its operator learns why. */
const [LISTENING_MS, PROBE_MS] = [4_000, 2_000]

export interface BusStart {
  /** The plugin of the bus. */
  readonly plugin: string
  /** What the bus is in, and the code of the error when it cannot be reached. */
  readonly server: string
  readonly code: string
  /** Resolves when this worker gets all messages from now on. */
  readonly listening: Promise<void>
  /** Fails with the reason when the server cannot be reached. */
  probe(): Promise<unknown>
  enter(): Promise<void>
}

/** Joins a bus for the first time. Throws an error with `code`, which names host and port. */
export async function enterBus(start: BusStart): Promise<void> {
  const { plugin, server, code, listening } = start
  const silent = () => storeUnavailable(`${server} sends no messages`, `Check ${server} and the network`)
  try {
    await withTimeout(LISTENING_MS, () => listening, { late: silent })
    await start.enter()
  } catch (error) {
    const reason = isUnreached(error)
      ? await withTimeout(PROBE_MS, () => start.probe(), { late: silent }).then(() => error, reasonFrom)
      : error
    if (!isUnreached(reason)) throw reason
    const { message, hint, details } = asSvcError(reason, code)
    throw svcError(code, `cannot join the bus of the cluster: ${message}`, {
      plugin,
      details,
      ...(hint === undefined ? {} : { hint }),
      cause: reason,
    })
  }
}

const reasonFrom = (reason: unknown): unknown => reason

const isUnreached = (error: unknown): boolean => ['STORE_UNAVAILABLE', 'STORE_UNSURE'].includes(codeOf(error) ?? '')

/** After the http plugin has drained. */
const AFTER_SERVING = 900
const LEAVE_MS = 5_000

/**
 * The service of a bus that opens when the worker joins: a server outside of a cluster needs none. It leaves when the host closes.
 * `exited` is for the hook `workerExit` of `Peers`.
 */
export function busOnJoin(
  scope: Pick<Scope, 'tap'>,
  self: string,
  open: () => Promise<OpenBus>
): { readonly service: NodeBus; readonly exited: (exit: { readonly worker: string }, ctx: CallContext) => Promise<void> } {
  let opened: Promise<OpenBus> | undefined
  const bus = async () => opened ?? Promise.reject(notJoined(self))
  const service: NodeBus = {
    join: async (facts, ctx) => (await (opened ??= open())).join(facts, ctx),
    leave: async ctx => (await opened)?.leave(ctx),
    members: async ctx => (await bus()).members(ctx),
    publish: async (topic, message, ctx) => (await bus()).publish(topic, message, ctx),
    async *call(to, topic, message, ctx) {
      yield* (await bus()).call(to, topic, message, ctx)
    },
    acquire: async (name, limit, ctx) => (await bus()).acquire(name, limit, ctx),
    release: async (name, ctx) => (await bus()).release(name, ctx),
  }
  const leave = () => service.leave(systemContext(AbortSignal.timeout(LEAVE_MS), 'bus'))
  scope.tap(Host.hooks.closing, leave, { stage: AFTER_SERVING })
  return { service, exited: async ({ worker }, ctx) => (await opened)?.exited(worker, ctx) }
}

/** Reads of the members: one after the other, and those that have not begun are one. */
export class MemberReads<T> {
  readonly #read: () => Promise<T>
  #last: Promise<unknown> = Promise.resolve()
  #next: Promise<T> | undefined

  constructor(read: () => Promise<T>) {
    this.#read = read
  }

  read(): Promise<T> {
    this.#next ??= this.inTurn(() => {
      this.#next = undefined
      return this.#read()
    })
    return this.#next
  }

  /** Does work that reads the members too, after the reads that have begun. */
  inTurn<R>(work: () => Promise<R>): Promise<R> {
    const turn = this.#last.catch(() => {}).then(work)
    this.#last = turn
    return turn
  }
}

/** Follows the messages of a bus. Resolves when `watch` has called `begun` for the first time: no message is missed from then on. */
export async function followMessages(
  watch: (begun: () => void, ctx: CallContext) => Promise<void>,
  lasting: CallContext,
  log: Log
): Promise<void> {
  const listening = Promise.withResolvers<void>()
  const messages = {
    what: 'the messages of the bus',
    watch: (ctx: CallContext) => watch(listening.resolve, ctx),
    read: async () => {},
  }
  follow(messages, lasting, log).catch((err: unknown) => log.error({ err }, 'failed to read new messages of the bus'))
  const end = () => listening.reject(lasting.signal.reason as Error)
  lasting.signal.addEventListener('abort', end, { once: true })
  await listening.promise.finally(() => lasting.signal.removeEventListener('abort', end))
}

/** The order in which members are listed. */
export const byWorker = (a: BusMember, b: BusMember): number => (a.worker < b.worker ? -1 : 1)
