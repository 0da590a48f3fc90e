import type { JSONRPCMessage, Transport, TransportSendOptions } from '@modelcontextprotocol/client'
import type { ToolStep } from '@svc/core/contracts'
import { callFailed } from '@svc/mcp-protocol'
import { failed, protocolError, type RpcError } from './failures.ts'

/** The answer to a request: a result, or an error of JSON-RPC. */
export type Answer = { readonly result: unknown } | { readonly error: RpcError }

/** Receives the messages of the server for a request, until the answer. */
export interface CallListener {
  /** The caller. Needed to attribute a question of the server while requests of several callers run. */
  readonly owner?: string
  step?(step: ToolStep): void
  /** The server asks for input (protocols before 2026). */
  ask?(id: string | number, method: string, params: unknown): void
}

interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Cancels the request, and notifies the server. */
  readonly signal: AbortSignal
  readonly listener?: CallListener
}

interface PendingRequest {
  readonly listener: CallListener | undefined
  resolve(answer: Answer): void
  reject(error: Error): void
}

/** The form of these ids; the SDK uses numbers or words. */
const OWN_ID = /^\d+\.\d+$/
const MAX_MESSAGE = 2_000

/** Requests over one link. They bypass the SDK and pass answers on unparsed; test/fast.spec.ts compares the answers with those of the SDK's client. */
export class JsonRpc {
  readonly #name: string
  readonly #generation: number
  readonly #link: Link
  readonly #isStateless: () => boolean
  readonly #pending = new Map<string, PendingRequest>()
  readonly #abandoned = new AbandonedRequests()
  #last = 0
  #over: Error | undefined

  /** `name` is the server's; `generation` is the connection's, so that a late answer to an earlier connection matches no request. */
  constructor(name: string, generation: number, link: Link, isStateless: () => boolean) {
    this.#name = name
    this.#generation = generation
    this.#link = link
    this.#isStateless = isStateless
  }

  /** Sends a request, and settles once: with the answer, or MCP_CALL_FAILED if the link fails, or the reason of an abort. */
  request(method: string, params: (token: string) => object, { headers, signal, listener }: RequestOptions): Promise<Answer> {
    if (this.#over !== undefined) return Promise.reject(this.#over)
    if (signal.aborted) return Promise.reject(signal.reason as Error)
    const link = this.#link
    const id = `${this.#generation}.${++this.#last}`
    const message = { jsonrpc: '2.0', id, method, params: params(id) }
    const streams = link.perRequest ? new AbortController() : undefined
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const settle = () => {
      this.#pending.delete(id)
      signal.removeEventListener('abort', onAbort)
    }
    const succeed = (answer: Answer) => {
      settle()
      resolve(answer)
    }
    const fail = (error: Error) => {
      settle()
      reject(error)
    }
    const onAbort = () => {
      if (listener !== undefined) this.#abandoned.add(id, listener.owner)
      fail(signal.reason as Error)
      if (!link.perRequest || !this.#isStateless()) this.#cancel(id)
      streams?.abort()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    this.#pending.set(id, { listener, resolve: succeed, reject: fail })
    const streamOptions = streams && {
      ...(headers && { headers }),
      requestSignal: streams.signal,
      onRequestStreamEnd: () =>
        fail(callFailed(this.#name, 'connection_refused', 'the connection was lost before the answer came')),
    }
    link.send(message, id, error => fail(failed(this.#name, error)), streamOptions)
    return promise
  }

  /** Whether a request with this id waits for its answer. */
  awaits(id: unknown): boolean {
    return this.#pending.has(id as string)
  }

  /** Returns true for a message that belongs to one of these requests. */
  take(message: Message): boolean {
    if (message.method === undefined) return this.#takeAnswer(message)
    return message.method === 'notifications/progress' && this.#takeProgress(message.params)
  }

  /** Fails the request whose answer is too long; without an id, all requests. */
  tooLong(id: string | undefined, error: Error): void {
    if (id === undefined) this.#rejectAll(error)
    else this.#pending.get(id)?.reject(error)
  }

  /** The listener for a message that names no request. */
  listener(): CallListener | undefined {
    const sender = this.#link.sender()
    if (sender !== undefined) return this.#pending.get(sender)?.listener
    return onlyListener(this.#pending, this.#abandoned.owners())
  }

  /** Fails all requests, and each new one. */
  end(error: Error): void {
    this.#over ??= error
    this.#rejectAll(error)
  }

  #rejectAll(error: Error): void {
    for (const one of this.#pending.values()) one.reject(error)
  }

  /** The caller does not wait until the server has received it. */
  #cancel(requestId: string): void {
    const params = { requestId, reason: 'cancelled' }
    this.#link.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params }, '', ignoreFailure)
  }

  #takeAnswer({ id, result, error }: Message): boolean {
    if (typeof id !== 'string') return false
    const one = this.#pending.get(id)
    this.#abandoned.delete(id)
    // a late answer matches no request
    if (one === undefined) return OWN_ID.test(id)
    if (isRpcError(error)) one.resolve({ error })
    else if (typeof result === 'object' && result !== null) one.resolve({ result })
    else one.reject(protocolError(this.#name, 'its answer is neither a result nor an error'))
    return true
  }

  #takeProgress(params: unknown): boolean {
    const { progressToken, progress, total, message } = (params ?? {}) as Record<string, unknown>
    const one = typeof progressToken === 'string' ? this.#pending.get(progressToken) : undefined
    if (one === undefined || typeof progress !== 'number') return false
    one.listener?.step?.({
      type: 'progress',
      progress,
      ...(typeof total === 'number' && { total }),
      ...(typeof message === 'string' && { message: message.slice(0, MAX_MESSAGE) }),
    })
    return true
  }
}

const isRpcError = (error: unknown): error is RpcError =>
  typeof error === 'object' && error !== null && typeof (error as RpcError).code === 'number'

/** Returns the listener if all running and recently abandoned requests have the same caller. */
function onlyListener(
  pending: Map<string, PendingRequest>,
  abandoned: readonly (string | undefined)[]
): CallListener | undefined {
  const listeners = [...pending.values()].flatMap(one => (one.listener === undefined ? [] : [one.listener]))
  const [first] = listeners
  const isAlone = listeners.length === 1 && abandoned.length === 0
  const owners = [...listeners.map(one => one.owner), ...abandoned]
  const isOneOwner = isAlone || (first?.owner !== undefined && owners.every(owner => owner === first.owner))
  return isOneOwner ? listeners.at(-1) : undefined
}

/** Milliseconds for which a server can still send for an abandoned request; until then its questions reach no other caller. */
const LINGER_MS = 5_000
const MAX_ABANDONED = 1_000

/** Cancelled requests without an answer. What the server still sends for one must not reach another caller. */
class AbandonedRequests {
  readonly #all = new Map<string, { readonly owner: string | undefined; readonly until: number }>()

  add(id: string, owner: string | undefined): void {
    if (this.#all.size >= MAX_ABANDONED) this.#all.delete(this.#all.keys().next().value!)
    this.#all.set(id, { owner, until: performance.now() + LINGER_MS })
  }
  delete(id: string): void {
    this.#all.delete(id)
  }
  owners(): readonly (string | undefined)[] {
    const now = performance.now()
    for (const [id, { until }] of this.#all) if (until < now) this.#all.delete(id)
    return [...this.#all.values()].map(one => one.owner)
  }
}

/** A message of the server, not checked yet. */
export interface Message {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: unknown
}

/** Carries messages to one server and back. */
export interface Link {
  readonly transport: Transport
  /** True if each request has a stream of its own (HTTP): closing that cancels a stateless request. */
  readonly perRequest: boolean
  /** Sends a message; `sender` is returned by `sender()` while an answer to it is handled. Calls `failed` if it cannot be sent. */
  send(message: object, sender: string, failed: (error: unknown) => void, options?: TransportSendOptions): void
  /** The `sender` of the request that the current message answers, if the transport knows it. */
  sender(): string | undefined
  /** Resolves with the reason once the link has ended. Never rejects. */
  readonly ended: Promise<string>
  /** Closes the link; the process and its children have ended when this resolves. */
  close(): Promise<void>
  /** Closes the link at once. */
  giveUp(reason: string): void
  /** True if a user has logged in meanwhile, so that another attempt can succeed. */
  authorize(): Promise<boolean>
  stderr(): string | undefined
}

/** Receives each message before the SDK does. */
export interface LinkEvents {
  /** Returns true for a message that the SDK must not get. */
  readonly take: (message: Message) => boolean
  /** A message exceeded the limit; `id` is the request that it answers, if it could be read. */
  tooLong(id: string | undefined): void
  /** The server sent something that is not a message. */
  countUnexpected(): void
}

/** For `failed`, if no caller waits for the message. */
export const ignoreFailure = () => {}

export const asMessage = (message: object) => message as JSONRPCMessage

/** A transport for the SDK's client without the messages that `take` returns true for. */
export function tapped(inner: Transport, take: (message: Message) => boolean, more: object = {}): Transport {
  const outer: Transport = {
    start: () => inner.start(),
    send: (message, options) => inner.send(message, options),
    close: () => inner.close(),
    setProtocolVersion: version => inner.setProtocolVersion?.(version),
    get sessionId() {
      return inner.sessionId
    },
    ...(inner.hasPerRequestStream !== undefined && { hasPerRequestStream: inner.hasPerRequestStream }),
  }
  inner.onmessage = (message, extra) => {
    if (!take(message)) outer.onmessage?.(message, extra)
  }
  inner.onclose = () => outer.onclose?.()
  inner.onerror = error => outer.onerror?.(error)
  return Object.assign(outer, more)
}
