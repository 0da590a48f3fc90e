import { abortable, codeOf, pause, type SvcError, traceHeaders } from '@svc/core'
import type { McpApp, McpErrorClass, ToolDialog, ToolStep } from '@svc/core/contracts'
import {
  callFailed,
  type CallRequest,
  failed,
  failureOf,
  type ListedTool,
  META,
  paramHeaders,
  ParkedCalls,
  protocolError,
  questionClosed,
  readApp,
  readOutcome,
  readToolList,
  readToolPage,
  refused,
  RPC,
  type RpcAnswer,
  RunningCall,
  statusOf,
  type StepOptions,
  type StepsEnd,
  type ToolPage,
  toolNotFound,
  watchedSteps,
} from '@svc/mcp-protocol'
import { createSemaphore, definedOf, type Semaphore } from '@svc/plugin-kit'
import type { Arguments, RunningCallContext } from './client-types.ts'
import type { ConnectionManager } from './connection-manager.ts'
import type { McpConnection } from './connection.ts'
import { positive, type ResolvedOptions } from './resolved-options.ts'

type CheckedTools = ReturnType<typeof createCatalogue>

/** Lists the tools of a server, and keeps the last list. Calls `changed` when it is discarded. */
export function createCatalogue(
  { name: server, input, limits }: ResolvedOptions,
  manager: ConnectionManager,
  changed: () => void
) {
  const isUsed = (tool: string) => input.tools?.includes(tool) ?? true
  let known: ReadonlyMap<string, ListedTool> | undefined
  async function list(signal: AbortSignal) {
    // a list alone does not reset the count of failures: a server can list its tools and crash on each call
    const connection = await manager.ready(signal)
    const page = async (cursor: string | undefined): Promise<ToolPage> => {
      const params = { ...definedOf({ cursor }), ...(connection.isStateless && { _meta: connection.meta([]) }) }
      const answer = await connection.request('tools/list', () => params, { signal })
      if ('result' in answer) return readToolPage(server, answer.result)
      if (answer.error.code === RPC.methodUnknown) return { tools: [] }
      throw refused(server, '', answer.error)
    }
    const { tools, problems } = await readToolList(limits, page)
    known = new Map(tools.map(tool => [tool.name, tool]))
    return { tools: tools.filter(tool => isUsed(tool.name)), problems }
  }
  return {
    list,
    /** Throws MCP_CALL_FAILED for a tool that the options of the client exclude. */
    check(tool: string) {
      if (!isUsed(tool)) throw toolNotFound(server, tool, { delivered: 'no' })
    },
    /** Lists the tools if there is no list. */
    async tool(name: string, signal: AbortSignal): Promise<ListedTool | undefined> {
      if (known === undefined) await list(signal)
      return known?.get(name)
    },
    /** Discards the list. */
    forget() {
      known = undefined
      changed()
    },
  }
}

/** Reads an app from the server. */
export async function requestApp(server: string, manager: ConnectionManager, uri: string, signal: AbortSignal): Promise<McpApp> {
  const connection = await manager.ready(signal)
  const params = { uri, ...(connection.isStateless && { _meta: connection.meta([]) }) }
  const answer = await connection.request('resources/read', () => params, { signal })
  if ('error' in answer) throw refused(server, '', answer.error)
  return readApp(server, uri, answer.result)
}

const MAX_WAITING = 1_000
/** How often a call is sent again that did not reach its server. */
const MAX_RESENDS = 2
/** How often a busy server can postpone a call, and the wait each time. */
const MAX_POSTPONED = 10
const POSTPONED_MS = 250

/** The calls of one server. */
export class ConnectionCalls {
  readonly #options: ResolvedOptions
  readonly #manager: ConnectionManager
  readonly #catalogue: CheckedTools
  readonly #changed: () => void
  readonly #limit: Semaphore
  readonly #running = new Set<RunningCall>()
  readonly #parked: ParkedCalls

  /** Calls `changed` when the number of calls changes. */
  constructor(options: ResolvedOptions, manager: ConnectionManager, catalogue: CheckedTools, changed: () => void) {
    const { name, limits } = options
    this.#options = options
    this.#manager = manager
    this.#catalogue = catalogue
    this.#changed = changed
    this.#parked = new ParkedCalls(name, limits)
    this.#limit = createSemaphore({
      places: limits.calls,
      placesEach: limits.callsPerTool,
      waiting: MAX_WAITING,
      busy: waiting => callFailed(name, 'timeout', `${waiting} calls are already waiting`, { delivered: 'no' }),
    })
  }

  /** The number of calls that run or wait for an answer. */
  get count(): number {
    return this.#running.size + this.#parked.size
  }

  /** Starts with the first `next`, and ends with its last step or `return`. */
  call(tool: string, args: Arguments, options: StepOptions, ctx: RunningCallContext): AsyncIterable<ToolStep> {
    let call: RunningCall | undefined
    let unwatch = () => {}
    const begin = () => {
      call = this.#start({ ...options, tool, args, trace: traceHeaders(ctx) })
      unwatch = call.watch(ctx.signal)
      this.#running.add(call)
      this.#changed()
      return call
    }
    return watchedSteps(begin, end => {
      if (call === undefined) return
      unwatch()
      this.#leave(call, end)
    })
  }

  /** Drops the calls that wait for an answer, because the connection has ended. */
  disconnected(): void {
    this.#parked.remove()
  }

  /** Starts a call, or resumes one that waited for an answer. */
  #start(request: CallRequest): RunningCall {
    this.#catalogue.check(request.tool)
    const { name, maxTotalMs: totalMs } = this.#options
    const timeoutMs = positive('timeout', request.timeoutMs ?? this.#options.timeoutMs)
    const parked = this.#parked.resume(request)
    if (parked) return parked
    const call = new RunningCall(name, request, { timeoutMs, totalMs }, () => this.#parked.park(call))
    this.#send(call).then(
      step => call.push(step),
      (error: unknown) => call.stop(failed(name, error))
    )
    return call
  }

  /** A parked call leaves the concurrency limit and does not enter it again; the number of parked calls has a limit of its own. */
  #leave(call: RunningCall, end: StepsEnd): void {
    this.#running.delete(call)
    call.leave()
    const last = typeof end === 'object' && 'last' in end ? end.last.type : undefined
    // its caller has not read the question, so no answer can come
    if (last !== 'input') this.#parked.remove(call)
    if (last === undefined) call.abandon()
    else call.pause()
    if (last === 'result') this.#manager.succeeded()
    this.#changed()
  }

  /** Sends a call until it has arrived once. Throws MCP_CALL_FAILED. */
  async #send(call: RunningCall): Promise<ToolStep> {
    const { name } = this.#options
    const { signal, request } = call
    const { tool } = request
    const taken = this.#limit.take(tool, signal)
    const place = taken instanceof Promise ? await taken : taken
    call.leave = () => place[Symbol.dispose]()
    if (signal.aborted) call.leave()
    signal.throwIfAborted()
    for (let [{ dialog }, resends, postponed] = [request, 0, 0]; ; ) {
      const answer = await this.#sendOnce(call, dialog, resends)
      if (answer === undefined) {
        resends++
        // connects first: this fails soon while the server is down
        await this.#manager.soon(signal)
        await request.beforeResend?.(signal)
        continue
      }
      if ('error' in answer) throw refused(name, tool, answer.error)
      const outcome = readOutcome(name, tool, answer.result, call.can)
      if (outcome.type === 'result') return outcome
      if (Object.keys(outcome.requests).length > 0) return outcome
      if (++postponed > MAX_POSTPONED) throw protocolError(name, `it postponed the call ${MAX_POSTPONED} times`)
      await pause(POSTPONED_MS, signal)
      dialog = { can: call.can, ...definedOf({ state: outcome.state }) }
    }
  }

  /** Returns `undefined` if the call was not executed and another attempt can succeed. */
  async #sendOnce(call: RunningCall, dialog: ToolDialog | undefined, resends: number): Promise<RpcAnswer | undefined> {
    const { signal } = call
    const connection = this.#manager.live ?? (await this.#manager.soon(signal))
    const { transport, isStateless } = connection
    if (dialog?.state !== undefined && !isStateless) throw questionClosed(this.#options.name)
    try {
      const headers = transport.hasPerRequestStream ? await this.#headersOf(call, isStateless) : undefined
      call.isSent = true
      const params = (token: string) => paramsOf(call, dialog, connection, token)
      const answer = await connection.request('tools/call', params, { signal, listener: call, headers })
      if (!('error' in answer) || answer.error.code !== RPC.headerMismatch || resends > 0) return answer
      this.#catalogue.forget()
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      if (!(await this.#canResend(connection, error as SvcError, signal)) || resends >= MAX_RESENDS) throw error
      return undefined
    }
  }

  /** Headers over HTTP: the trace, and the arguments that a stateless server wants there too. */
  async #headersOf({ signal, request: { tool, args, trace } }: RunningCall, isStateless: boolean) {
    const known = isStateless ? await this.#catalogue.tool(tool, signal) : undefined
    return known?.paramHeaders.length ? { ...paramHeaders(known.paramHeaders, args), ...trace } : trace
  }

  /** Updates the connection after a failure. Returns true if the call was not executed and another attempt can succeed. */
  async #canResend(connection: McpConnection, error: SvcError, signal: AbortSignal): Promise<boolean> {
    const { transport } = connection
    if (codeOf(error) !== 'MCP_CALL_FAILED' || !transport.hasPerRequestStream) return isUndelivered(error)
    const { class: kind, message } = failureOf(error)
    const status = statusOf(error)
    if (status === 404) this.#manager.lost(connection, 'it has forgotten the session')
    // a server that answers with a status is there: other calls go on
    else if (kind === 'connection_refused' && status === undefined) this.#manager.lost(connection, message)
    else if (kind === 'authentication_failed') {
      const isLoggedIn = await abortable(transport.authorize(), signal)
      if (isLoggedIn) this.#manager.lost(connection, 'a user has logged in')
      return isLoggedIn
    } else return false
    return isUndelivered(error)
  }
}

function paramsOf({ request, can }: RunningCall, dialog: ToolDialog | undefined, connection: McpConnection, token: string) {
  return {
    name: request.tool,
    arguments: request.args,
    ...(dialog?.answers !== undefined && { inputResponses: dialog.answers }),
    ...(dialog?.state !== undefined && { requestState: dialog.state }),
    // a stateless server logs only on request; one with a session always can
    _meta: {
      ...(connection.isStateless && { ...connection.meta(can), [META.logLevel]: 'info' }),
      ...request.trace,
      progressToken: token,
    },
  }
}

const RESENDABLE: ReadonlySet<McpErrorClass> = new Set(['connection_refused', 'protocol_error'])
const isUndelivered = (error: SvcError) => error.details?.['delivered'] === 'no' && RESENDABLE.has(failureOf(error).class)
