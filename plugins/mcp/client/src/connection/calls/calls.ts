import { randomUUID } from 'node:crypto'
import { codeOf, type SvcError } from '@svc/core'
import type { McpErrorClass, ToolDialog, ToolStep } from '@svc/core/contracts'
import { callFailed, failureOf, type ListedTool, META, paramHeaders, RPC } from '@svc/mcp-protocol'
import { createSemaphore, type Semaphore } from '@svc/plugin-kit'
import type { Arguments, RunningCallContext, StepOptions } from '../client-types.ts'
import type { ConnectionManager } from '../connection-manager.ts'
import type { Connection } from '../connection.ts'
import { cancelled, failed, protocolError, questionClosed, refused, statusOf } from '../failures.ts'
import type { Answer } from '../json-rpc.ts'
import { positive, type ResolvedOptions } from '../options.ts'
import { abortable, type Clock, wait } from '../timing.ts'
import { readOutcome } from './messages.ts'
import { answerAll, createRunningCall, listenerOf, type RunningCall, stop, traceContextOf } from './running-call.ts'

const MAX_WAITING = 1_000

/** The calls of one server. */
export interface Calls {
  call(tool: string, args: Arguments, options: StepOptions, ctx: RunningCallContext): AsyncIterable<ToolStep>
  /** Drops the calls that wait for an answer, because the connection has ended. */
  disconnected(): void
  /** The number of calls that run or wait for an answer. */
  count(): number
}

/** What all calls of a server share. */
interface CallsContext {
  readonly options: ResolvedOptions
  readonly manager: ConnectionManager
  readonly limit: Semaphore
  readonly parked: ParkedCalls<RunningCall>
  readonly running: Set<RunningCall>
  /** Finds a tool in the last list; stateless HTTP needs it. */
  readonly tool: (name: string, signal: AbortSignal) => Promise<ListedTool | undefined>
  /** Discards the last list. */
  readonly forget: () => void
  /** The number of calls has changed. */
  readonly changed: () => void
}

export function createCalls(
  options: ResolvedOptions,
  manager: ConnectionManager,
  callbacks: Pick<CallsContext, 'tool' | 'forget' | 'changed'>
): Calls {
  const { name, limits, clock } = options
  const context: CallsContext = {
    options,
    manager,
    limit: createSemaphore({
      places: limits.calls,
      placesEach: limits.callsPerTool,
      waiting: MAX_WAITING,
      busy: waiting => callFailed(name, 'timeout', `${waiting} calls are already waiting`, { delivered: 'no' }),
    }),
    parked: new ParkedCalls(name, limits.parked, limits.parkedMs, clock),
    running: new Set(),
    ...callbacks,
  }
  return {
    call: (tool, args, callOptions, ctx) => ({
      [Symbol.asyncIterator]: () => iterate(context, () => start(context, tool, args, callOptions, ctx), ctx.signal),
    }),
    disconnected: () => context.parked.clear(),
    count: () => context.running.size + context.parked.size,
  }
}

const DONE = { done: true, value: undefined } as const

/** Iterates over a call: it starts with the first `next`, and ends with its last step or `return`. Not a generator: each step would pass through one more of them. */
function iterate(context: CallsContext, begin: () => RunningCall, signal: AbortSignal): AsyncIterator<ToolStep> {
  let running: RunningCall | undefined
  let isOver = false
  const onAbort = () => running && stop(running, cancelled(context.options.name))
  const open = () => {
    running = begin()
    context.running.add(running)
    context.changed()
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    return running
  }
  const end = (how: End) => {
    if (isOver) return
    isOver = true
    signal.removeEventListener('abort', onAbort)
    if (running) leave(context, running, how)
  }
  return {
    async next() {
      if (isOver) return DONE
      try {
        const one = running ?? open()
        const step = await one.steps.next()
        if (step.type !== 'result' && step.type !== 'input') return { done: false, value: step }
        const waits = step.type === 'input' && one.questions.size > 0
        const value = waits ? park(context, one, step) : step
        end(waits ? 'parked' : 'done')
        if (step.type === 'result') context.manager.succeeded()
        return { done: false, value }
      } catch (error) {
        end('aborted')
        throw failed(context.options.name, error)
      }
    },
    async return() {
      end('aborted')
      return DONE
    },
  }
}

type End = 'aborted' | 'parked' | 'done'

/** Starts a call, or resumes one that waited for an answer. */
function start(
  context: CallsContext,
  tool: string,
  args: Arguments,
  callOptions: StepOptions,
  ctx: RunningCallContext
): RunningCall {
  const { options } = context
  const { owner, dialog } = callOptions
  const timeoutMs = positive('timeout', callOptions.timeoutMs ?? options.timeoutMs)
  const resumed = resume(context, tool, callOptions)
  if (resumed !== undefined) return resumed
  const running = createRunningCall(options, { tool, args, owner, trace: traceContextOf(ctx), can: dialog?.can ?? [] }, timeoutMs)
  send(context, running, callOptions).then(
    step => running.steps.push(step),
    (error: unknown) => running.steps.fail(failed(options.name, error))
  )
  return running
}

function resume({ parked }: CallsContext, tool: string, { owner, dialog }: StepOptions): RunningCall | undefined {
  if (dialog?.state === undefined || !dialog.state.startsWith(PARKED)) return undefined
  const running = parked.take(dialog.state.slice(PARKED.length), { tool, owner })
  running.can = dialog.can
  running.deadline.extend()
  answerAll(running, dialog.answers)
  return running
}

/** The prefix of the states that this client makes; a stateless server makes its own. */
const PARKED = 'svc-call:'

function park(context: CallsContext, running: RunningCall, step: ToolStep & { type: 'input' }): ToolStep {
  running.deadline.stop()
  const late = () => stop(running, callFailed(context.options.name, 'cancelled', 'its question was not answered in time'))
  const { tool, owner } = running
  return { ...step, state: PARKED + context.parked.add(running, { tool, owner }, late) }
}

/** A parked call leaves the concurrency limit and does not enter it again; the number of parked calls has a limit of its own. */
function leave({ running: all, changed, options }: CallsContext, running: RunningCall, end: End): void {
  all.delete(running)
  running.leave()
  running.leave = () => {}
  if (end === 'aborted') stop(running, cancelled(options.name))
  if (end === 'done') running.deadline.stop()
  changed()
}

/** How often a call is sent again that did not reach its server. */
const MAX_RESENDS = 2
/** How often a busy server can postpone a call, and the wait each time. */
const MAX_POSTPONED = 10
const POSTPONED_MS = 250

/** Sends a call until it has arrived once. Throws MCP_CALL_FAILED. */
async function send(context: CallsContext, running: RunningCall, { dialog, beforeResend }: StepOptions): Promise<ToolStep> {
  const { options, limit, manager } = context
  const { tool } = running
  const { signal } = running.abort
  const taken = limit.take(tool, signal)
  const place = taken instanceof Promise ? await taken : taken
  if (signal.aborted) place[Symbol.dispose]()
  signal.throwIfAborted()
  running.leave = () => place[Symbol.dispose]()
  let current: ToolDialog | undefined = dialog
  for (let [resends, postponed] = [0, 0]; ; ) {
    const connection = manager.live ?? (await manager.soon(signal))
    const answer = await sendOnce(context, running, connection, current, resends)
    if (answer === undefined) {
      resends++
      // connects first: this fails soon while the server is down
      await manager.soon(signal)
      await beforeResend?.(signal)
      continue
    }
    if ('error' in answer) throw refused(options.name, tool, answer.error)
    const outcome = readOutcome(options.name, tool, answer.result)
    if (outcome.type === 'result') return outcome
    if (Object.keys(outcome.requests).length > 0) return checkInput(options.name, outcome, running.can)
    if (++postponed > MAX_POSTPONED) throw protocolError(options.name, `it postponed the call ${MAX_POSTPONED} times`)
    await wait(options.clock, POSTPONED_MS, signal)
    current = { can: running.can, ...(outcome.state !== undefined && { state: outcome.state }) }
  }
}

/** Returns `undefined` if the call was not executed and another attempt can succeed. */
async function sendOnce(
  context: CallsContext,
  running: RunningCall,
  connection: Connection,
  dialog: ToolDialog | undefined,
  resends: number
): Promise<Answer | undefined> {
  const { signal } = running.abort
  if (dialog?.state !== undefined && !connection.stateless) throw questionClosed(context.options.name)
  try {
    const listener = listenerOf(running, connection.respond)
    const headers = connection.perRequest ? await headersOf(context, running, connection.stateless) : undefined
    const params = (token: string) => paramsOf(running, connection, dialog, token)
    const answer = await connection.rpc.request('tools/call', params, { signal, listener, ...(headers && { headers }) })
    if (!('error' in answer) || answer.error.code !== RPC.headerMismatch || resends > 0) return answer
    context.forget()
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    if (!(await canResend(context.manager, connection, error as SvcError, signal)) || resends >= MAX_RESENDS) throw error
    return undefined
  }
}

function paramsOf(
  { tool, args, can, trace }: RunningCall,
  { stateless, meta }: Connection,
  dialog: ToolDialog | undefined,
  token: string
): object {
  return {
    name: tool,
    arguments: args,
    ...(dialog?.answers !== undefined && { inputResponses: dialog.answers }),
    ...(dialog?.state !== undefined && { requestState: dialog.state }),
    // a stateless server logs only on request; one with a session always can
    _meta: { ...(stateless && { ...meta(can), [META.logLevel]: 'info' }), ...trace, progressToken: token },
  }
}

/** Headers over HTTP: the trace, and the arguments that a stateless server wants there too. */
async function headersOf(context: CallsContext, { tool, args, abort, trace }: RunningCall, stateless: boolean) {
  const known = stateless ? await context.tool(tool, abort.signal) : undefined
  if (known === undefined || known.paramHeaders.length === 0) return trace
  return { ...paramHeaders(known.paramHeaders, args), ...trace }
}

/** Updates the connection after a failure. Returns true if the call was not executed and another attempt can succeed. */
async function canResend(
  manager: ConnectionManager,
  connection: Connection,
  error: SvcError,
  signal: AbortSignal
): Promise<boolean> {
  if (codeOf(error) !== 'MCP_CALL_FAILED' || !connection.perRequest) return isUndelivered(error)
  const { class: kind, message } = failureOf(error)
  const status = statusOf(error)
  if (status === 404) manager.lost(connection, 'it has forgotten the session')
  // a server that answers with a status is there: other calls go on
  else if (kind === 'connection_refused' && status === undefined) manager.lost(connection, message)
  else if (kind === 'authentication_failed') {
    const isLoggedIn = await abortable(connection.authorize(), signal)
    if (isLoggedIn) manager.lost(connection, 'a user has logged in')
    return isLoggedIn
  } else return false
  return isUndelivered(error)
}

const RESENDABLE: ReadonlySet<McpErrorClass> = new Set(['connection_refused', 'protocol_error'])
const isUndelivered = (error: SvcError) => error.details?.['delivered'] === 'no' && RESENDABLE.has(failureOf(error).class)

function checkInput(name: string, step: ToolStep & { type: 'input' }, can: RunningCall['can']): ToolStep {
  const undeclared = Object.values(step.requests).find(one => !can.includes(one.method))
  if (undeclared === undefined) return step
  throw protocolError(name, `it asks for ${undeclared.method}, which the client did not declare`)
}

/** Only the same caller can resume a call, with the same tool. */
interface ParkedKey {
  readonly tool: string
  readonly owner: string | undefined
}

/** Calls that wait for the answer of a user to a question of the server (before 2026, where the call stays open meanwhile). */
class ParkedCalls<T> {
  readonly #server: string
  readonly #max: number
  readonly #ms: number
  readonly #clock: Clock
  readonly #all = new Map<string, ParkedKey & { readonly call: T; readonly cancel: () => void }>()

  constructor(server: string, max: number, ms: number, clock: Clock) {
    this.#server = server
    this.#max = max
    this.#ms = ms
    this.#clock = clock
  }

  get size(): number {
    return this.#all.size
  }

  /** Adds a call and returns the state that resumes it. Calls `late` if no answer comes in time. */
  add(call: T, key: ParkedKey, late: () => void): string {
    if (this.#all.size >= this.#max)
      throw callFailed(this.#server, 'cancelled', `${this.#max} calls are already waiting for an answer`)
    const state = randomUUID()
    const cancel = this.#clock.after(this.#ms, () => {
      this.#all.delete(state)
      late()
    })
    this.#all.set(state, { ...key, call, cancel })
    return state
  }

  /** Removes and returns the call. Throws MCP_CALL_FAILED if it has ended, or belongs to another caller. */
  take(state: string, { tool, owner }: ParkedKey): T {
    const parked = this.#all.get(state)
    if (parked === undefined || parked.tool !== tool || parked.owner !== owner) throw questionClosed(this.#server)
    this.#remove(state)
    return parked.call
  }

  /** Drops all calls, because their connection has ended. */
  clear(): void {
    for (const state of this.#all.keys()) this.#remove(state)
  }

  #remove(state: string): void {
    this.#all.get(state)?.cancel()
    this.#all.delete(state)
  }
}
