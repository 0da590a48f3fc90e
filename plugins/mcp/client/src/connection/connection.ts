import type { Client, JSONRPCMessage, Transport, TransportSendOptions } from '@modelcontextprotocol/client'
import type { InputRequest } from '@svc/core/contracts'
import {
  callFailed,
  failed,
  isInputMethod,
  protocolError,
  readLog,
  readProgress,
  responseTo,
  type RpcError,
  type RunningCall,
  capabilitiesOf,
  isModern,
  META,
} from '@svc/mcp-protocol'
import { stripped } from '@svc/plugin-kit'
import { tooLarge } from '../errors.ts'
import type { ConnectionTimings } from './client-types.ts'
import type { ResolvedOptions } from './resolved-options.ts'

/** A transport of the SDK, with what a connection needs besides. */
export interface ServerTransport extends Transport {
  /** With `sender`: `sender()` returns it while an answer to this message is handled. */
  send(message: JSONRPCMessage, options?: TransportSendOptions, sender?: string): Promise<void>
  /** The `sender` of the message that the current one answers, if the transport knows it. */
  sender(): string | undefined
  /** Resolves with the reason once the transport has ended. Never rejects. */
  readonly ended: Promise<string>
  /** Ends the transport; the process and its children have ended when this resolves. */
  end(): Promise<void>
  /** Ends the transport at once. */
  abort(reason: string): void
  /** True if a user has logged in meanwhile, so that another attempt can succeed. */
  authorize(): Promise<boolean>
  stderr(): string | undefined
  /** The milliseconds that logging in has taken. */
  authMs(): number
}

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

/** The name of this client. */
export const CLIENT = { name: 'svc', version: '0.1.0' }

/**
 * One connection, from its handshake to its end. A late message on it reaches no other connection. Requests bypass the SDK, and answers are passed on unparsed;
 * test/fast.spec.ts compares them with those of the SDK's client.
 */
export class McpConnection {
  transport!: ServerTransport
  /** Known after the handshake, as the next two. */
  protocolVersion = ''
  server: { readonly name: string; readonly version: string } | undefined
  instructions: string | undefined
  timings: ConnectionTimings = { startMs: 0, authMs: 0, handshakeMs: 0 }
  readonly #options: ResolvedOptions
  readonly #generation: number
  readonly #toolsChanged: () => void
  readonly #pending = new Map<string, PendingRequest>()
  /** Cancelled requests without an answer. What the server still sends for one must not reach another caller. */
  readonly #abandoned = new Map<string, { readonly owner: string | undefined; readonly until: number }>()
  #last = 0
  #over: Error | undefined
  #flood = { begun: 0, count: 0 }

  /** `generation` is the connection's, so that a late answer to an earlier connection matches no request. */
  constructor(options: ResolvedOptions, generation: number, toolsChanged: () => void) {
    this.#options = options
    this.#generation = generation
    this.#toolsChanged = toolsChanged
  }

  /** True if each request carries all of its context (2026-07-28 and later). */
  get isStateless(): boolean {
    return isModern(this.protocolVersion)
  }

  /** `_meta` of a request to a stateless server: the questions that the caller supports. */
  meta(can: readonly InputRequest['method'][]): object {
    return { [META.version]: this.protocolVersion, [META.client]: CLIENT, [META.capabilities]: capabilitiesOf(can) }
  }

  /** Takes what the server said in the handshake, without hidden characters. */
  connected(client: Client): void {
    const { name, version = '' } = stripped(client.getServerVersion() ?? {}, () => {}) as { name?: string; version?: string }
    this.protocolVersion = client.getNegotiatedProtocolVersion()!
    this.server = name === undefined ? undefined : { name, version }
    this.instructions = stripped(client.getInstructions(), () => {})
    void this.transport.ended.then(reason => this.end(reason))
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
      reject(failed(this.#options.name, error))
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
    const error = tooLarge(this.#options.name, this.#options.limits.resultBytes)
    if (id === undefined) this.#rejectAll(error)
    else this.#pending.get(id)?.reject(error)
  }

  /** Counts a message that no request expects. Too many of them end the transport. */
  countUnexpected(): void {
    const now = performance.now()
    if (now - this.#flood.begun > FLOOD_S * 1_000) this.#flood = { begun: now, count: 0 }
    if (++this.#flood.count > FLOOD_S * this.#options.limits.noticesPerSecond)
      this.transport.abort('it sent too many messages without a request')
  }

  /** Fails all requests, and each new one. */
  end(reason: string): void {
    this.#over ??= this.#lost(`the connection was lost: ${reason}`)
    this.#rejectAll(this.#over)
  }

  #lost(what: string): Error {
    return callFailed(this.#options.name, 'connection_refused', what)
  }

  #rejectAll(error: Error): void {
    for (const one of this.#pending.values()) one.reject(error)
  }

  #send(message: object, sender: string, failed?: (error: unknown) => void, options?: TransportSendOptions): void {
    const ignore = () => {}
    try {
      this.transport.send(message as JSONRPCMessage, options, sender).catch(failed ?? ignore)
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
    else one.reject(protocolError(this.#options.name, 'its answer is neither a result nor an error'))
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
