import { isInputMethod, isModern, readLog, readProgress, responseTo, type RpcError } from './answers.ts'
import type { RunningCall } from './call.ts'
import { callFailed, failed, protocolError } from './failures.ts'
import type { McpLimits } from './limits.ts'

/** A message of the server, not checked yet. */
export interface RpcMessage {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: unknown
}

/** The answer to a request: a result, or an error of JSON-RPC. */
export type RpcAnswer = { readonly result: unknown } | { readonly error: RpcError }

/** The part of a transport that requests need. The names are those of the SDK. */
export interface RequestTransport {
  /** Each request has a stream of its own for its answer (HTTP). */
  readonly hasPerRequestStream?: boolean | undefined
  /** With `sender`: `sender()` returns it while an answer to this message is handled. */
  send(message: object, options?: RequestStream, sender?: string): Promise<void>
  /** The `sender` of the message that the current one answers, if the transport knows it. */
  sender(): string | undefined
  /** Ends the transport at once. */
  abort(reason: string): void
}

interface RequestStream {
  readonly headers?: Readonly<Record<string, string>>
  readonly requestSignal?: AbortSignal
  readonly onRequestStreamEnd?: () => void
}

interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Cancels the request, and notifies the server. */
  readonly signal: AbortSignal
  /** Receives the messages of the server until the answer. */
  readonly listener?: RunningCall
}

interface PendingRequest {
  readonly listener: RunningCall | undefined
  resolve(answer: RpcAnswer): void
  reject(error: Error): void
}

/** The form of these ids; the SDK uses numbers or words. */
const OWN_ID = /^\d+\.\d+$/
/** Milliseconds for which a server can still send for an abandoned request; until then its questions reach no other caller. */
const LINGER_MS = 5_000
const MAX_ABANDONED = 1_000
const FLOOD_S = 10

type RequestLimits = Pick<McpLimits, 'resultBytes' | 'noticesPerSecond'>

/** The requests of a client over one connection, and the messages that its server sends meanwhile. Results are passed on unparsed. */
export class ClientRequests<T extends RequestTransport> {
  transport!: T
  /** Known after the handshake. */
  protocolVersion = ''
  readonly #server: string
  readonly #limits: RequestLimits
  readonly #generation: number
  readonly #toolsChanged: () => void
  readonly #pending = new Map<string, PendingRequest>()
  /** Cancelled requests without an answer. What the server still sends for one must not reach another caller. */
  readonly #abandoned = new Map<string, { readonly owner: string | undefined; readonly until: number }>()
  #last = 0
  #over: Error | undefined
  #flood = { begun: 0, count: 0 }

  /** `generation` is the connection's, so that a late answer to an earlier connection matches no request. */
  constructor(
    { name, limits }: { readonly name: string; readonly limits: RequestLimits },
    generation: number,
    toolsChanged: () => void
  ) {
    this.#server = name
    this.#limits = limits
    this.#generation = generation
    this.#toolsChanged = toolsChanged
  }

  /** True if each request carries all of its context (2026-07-28 and later). */
  get isStateless(): boolean {
    return isModern(this.protocolVersion)
  }

  /** Sends a request, and settles once: with the answer, or MCP_CALL_FAILED if the transport fails, or the reason of an abort. */
  request(method: string, params: (token: string) => object, { headers, signal, listener }: RequestOptions): Promise<RpcAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<RpcAnswer>()
    if (this.#over !== undefined || signal.aborted) {
      reject(this.#over ?? signal.reason)
      return promise
    }
    const id = `${this.#generation}.${++this.#last}`
    const stream = this.transport.hasPerRequestStream ? new AbortController() : undefined
    const settle = () => {
      this.#pending.delete(id)
      signal.removeEventListener('abort', onAbort)
    }
    const fail = (error: unknown) => {
      settle()
      reject(failed(this.#server, error))
    }
    const onAbort = () => {
      settle()
      reject(signal.reason)
      if (listener !== undefined) this.#abandon(id, listener.request.owner)
      // closing its stream cancels a stateless request
      if (stream === undefined || !this.isStateless)
        this.#send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason: 'cancelled' } }, '')
      stream?.abort()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    const succeed = (answer: RpcAnswer) => {
      settle()
      resolve(answer)
    }
    this.#pending.set(id, { listener, resolve: succeed, reject: fail })
    const streamOptions = stream && {
      ...(headers && { headers }),
      requestSignal: stream.signal,
      onRequestStreamEnd: () => fail(this.#lost('the connection was lost before the answer came')),
    }
    this.#send({ jsonrpc: '2.0', id, method, params: params(id) }, id, fail, streamOptions)
    return promise
  }

  /** Takes a message of the transport. Returns true if the SDK must not get it. */
  take(message: RpcMessage): boolean {
    const { id, method, params } = message
    if (method === undefined) return this.#takeAnswer(message)
    this.countUnexpected()
    if (method === 'notifications/progress') return this.#takeProgress(params)
    if (method === 'notifications/tools/list_changed') this.#toolsChanged()
    else if (method === 'notifications/message') {
      const step = readLog(params)
      if (step !== undefined) this.#listener()?.step(step)
    } else if ((typeof id === 'string' || typeof id === 'number') && isInputMethod(method) && !this.isStateless) {
      const respond = (answer: object) => this.#send({ jsonrpc: '2.0', id, ...answer }, '')
      const listener = this.#listener()
      if (listener !== undefined) listener.ask({ id, method, params }, respond)
      // several calls run: the question cannot be attributed to one of them
      else respond(responseTo({ method }, undefined))
    } else return false
    return true
  }

  /** A message exceeded the limit; `id` is the request that it answers, if it could be read. */
  tooLong(id: string | undefined): void {
    const error = protocolError(this.#server, `it answers with more than ${this.#limits.resultBytes} bytes`)
    if (id === undefined) this.#rejectAll(error)
    else this.#pending.get(id)?.reject(error)
  }

  /** Counts a message that no request expects. Too many of them end the transport. */
  countUnexpected(): void {
    const now = performance.now()
    if (now - this.#flood.begun > FLOOD_S * 1_000) this.#flood = { begun: now, count: 0 }
    if (++this.#flood.count > FLOOD_S * this.#limits.noticesPerSecond)
      this.transport.abort('it sent too many messages without a request')
  }

  /** Fails all requests, and each new one. */
  end(reason: string): void {
    this.#over ??= this.#lost(`the connection was lost: ${reason}`)
    this.#rejectAll(this.#over)
  }

  #lost(what: string): Error {
    return callFailed(this.#server, 'connection_refused', what)
  }

  #rejectAll(error: Error): void {
    for (const one of this.#pending.values()) one.reject(error)
  }

  #send(message: object, sender: string, failed?: (error: unknown) => void, options?: RequestStream): void {
    const ignore = () => {}
    try {
      this.transport.send(message, options, sender).catch(failed ?? ignore)
    } catch (error) {
      // arguments that JSON cannot hold
      failed?.(error)
    }
  }

  /** The listener for a message that names no request. */
  #listener(): RunningCall | undefined {
    const sender = this.transport.sender()
    if (sender !== undefined) return this.#pending.get(sender)?.listener
    const listeners = [...this.#pending.values()].flatMap(one => (one.listener === undefined ? [] : [one.listener]))
    const abandoned = this.#abandonedOwners()
    if (listeners.length === 1 && abandoned.length === 0) return listeners[0]
    const owners = [...listeners.map(({ request }) => request.owner), ...abandoned]
    return owners[0] !== undefined && owners.every(owner => owner === owners[0]) ? listeners.at(-1) : undefined
  }

  #abandon(id: string, owner: string | undefined): void {
    if (this.#abandoned.size >= MAX_ABANDONED) this.#abandoned.delete(this.#abandoned.keys().next().value!)
    this.#abandoned.set(id, { owner, until: performance.now() + LINGER_MS })
  }

  #abandonedOwners(): readonly (string | undefined)[] {
    const now = performance.now()
    for (const [id, { until }] of this.#abandoned) if (until < now) this.#abandoned.delete(id)
    return [...this.#abandoned.values()].map(one => one.owner)
  }

  #takeAnswer({ id, result, error }: RpcMessage): boolean {
    const one = this.#pending.get(id as string)
    if (one === undefined) this.countUnexpected()
    if (typeof id !== 'string') return false
    this.#abandoned.delete(id)
    // a late answer matches no request
    if (one === undefined) return OWN_ID.test(id)
    if (isRpcError(error)) one.resolve({ error })
    else if (typeof result === 'object' && result !== null) one.resolve({ result })
    else one.reject(protocolError(this.#server, 'its answer is neither a result nor an error'))
    return true
  }

  #takeProgress(params: unknown): boolean {
    const { progressToken } = (params ?? {}) as { readonly progressToken?: string }
    const one = this.#pending.get(progressToken!)
    const step = one && readProgress(params)
    if (step !== undefined) one?.listener?.step(step)
    return step !== undefined
  }
}

const isRpcError = (error: unknown): error is RpcError =>
  typeof error === 'object' && error !== null && typeof (error as RpcError).code === 'number'
