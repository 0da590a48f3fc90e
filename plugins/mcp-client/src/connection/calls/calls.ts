import { codeOf, type SvcError } from '@svc/core'
import type { McpErrorClass, ToolDialog, ToolStep } from '@svc/core/contracts'
import { callFailed, failureOf, type ListedTool, META, paramHeaders, RPC } from '@svc/mcp'
import type { Arguments, CallUse, StepOptions } from '../client-types.ts'
import type { Supervisor } from '../connection-manager.ts'
import type { Connection } from '../connection.ts'
import { cancelled, failed, protocolError, refused, statusOf } from '../failures.ts'
import type { Answer } from '../json-rpc.ts'
import { above0, type Settled } from '../options.ts'
import { raced } from '../timing.ts'
import { createParking, createPlaces, type Parking, type Places } from './call-limits.ts'
import { noAnswer, readOutcome } from './messages.ts'
import { answerAll, askerOf, createRunning, type Running, stop, traceWords } from './running-call.ts'

/** The calls of one server. */
export interface Calls {
  call(tool: string, args: Arguments, options: StepOptions, use: CallUse): AsyncIterable<ToolStep>
  /** The connection is gone: what waits for a person waits for nothing. */
  disconnected(): void
  /** Calls that run, and those that wait for a person. */
  count(): number
}

/** What calls share. */
export interface Sharing {
  readonly settled: Settled
  readonly supervisor: Supervisor
  readonly places: Places
  readonly parking: Parking<Running>
  readonly running: Set<Running>
  /** What is known of a tool without asking; stateless HTTP needs it. */
  readonly tool: (name: string, signal: AbortSignal) => Promise<ListedTool | undefined>
  /** It is not as it was known. */
  readonly forget: () => void
  /** The number of calls has changed. */
  readonly changed: () => void
}

export function createCalls(settled: Settled, supervisor: Supervisor, more: Pick<Sharing, 'tool' | 'forget' | 'changed'>): Calls {
  const { name, limits, clock } = settled
  const sharing: Sharing = {
    settled,
    supervisor,
    places: createPlaces(name, limits.calls, limits.callsPerTool),
    parking: createParking(name, limits.parked, limits.parkedMs, clock),
    running: new Set(),
    ...more,
  }
  return {
    call: (tool, args, options, use) => ({
      [Symbol.asyncIterator]: () => readingOf(sharing, () => runningOf(sharing, tool, args, options, use), use.signal),
    }),
    disconnected: () => sharing.parking.clear(),
    count: () => sharing.running.size + sharing.parking.size,
  }
}

const DONE = { done: true, value: undefined } as const

/**
 * Reads a call: it begins with the first `next`, and ends with its last word, or when its reader leaves. By hand: a generator would be one more that each step
 * goes through.
 */
function readingOf(sharing: Sharing, begin: () => Running, signal: AbortSignal): AsyncIterator<ToolStep> {
  let running: Running | undefined
  let isOver = false
  const onAbort = () => running && stop(running, cancelled(sharing.settled.name))
  const open = () => {
    running = begin()
    sharing.running.add(running)
    sharing.changed()
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    return running
  }
  const end = (how: End) => {
    if (isOver) return
    isOver = true
    signal.removeEventListener('abort', onAbort)
    if (running) leave(sharing, running, how)
  }
  return {
    async next() {
      if (isOver) return DONE
      try {
        const one = running ?? open()
        const step = await one.job.next()
        if (step.type !== 'result' && step.type !== 'input') return { done: false, value: step }
        const waits = step.type === 'input' && one.questions.size > 0
        const value = waits ? park(sharing, one, step) : step
        end(waits ? 'parked' : 'done')
        if (step.type === 'result') sharing.supervisor.kept()
        return { done: false, value }
      } catch (error) {
        end('cut')
        throw failed(sharing.settled.name, error)
      }
    },
    async return() {
      end('cut')
      return DONE
    },
  }
}

function runningOf(sharing: Sharing, tool: string, args: Arguments, options: StepOptions, use: CallUse): Running {
  const timeoutMs = above0('timeout', options.timeoutMs ?? sharing.settled.timeoutMs)
  return resumed(sharing, tool, options) ?? begun(sharing, tool, args, { ...options, timeoutMs }, use)
}

type Begun = StepOptions & { readonly timeoutMs: number }
type End = 'cut' | 'parked' | 'done'

function begun(sharing: Sharing, tool: string, args: Arguments, options: Begun, use: CallUse): Running {
  const { owner, dialog, timeoutMs } = options
  const running = createRunning(sharing.settled, tool, args, { owner, trace: traceWords(use), timeoutMs, can: dialog?.can ?? [] })
  send(sharing, running, dialog).then(
    step => running.job.push(step),
    (error: unknown) => running.job.fail(failed(sharing.settled.name, error))
  )
  return running
}

/** A call that has waited for an answer goes on with it. */
function resumed({ parking }: Sharing, tool: string, { owner, dialog }: StepOptions): Running | undefined {
  if (dialog?.state === undefined || !dialog.state.startsWith(PARKED)) return undefined
  const running = parking.take(dialog.state.slice(PARKED.length), { tool, owner })
  running.can = dialog.can
  running.deadline.extend()
  answerAll(running, dialog.answers)
  return running
}

/** So begins a state of ours: those of a server are its own words. */
const PARKED = 'svc-call:'

function park(sharing: Sharing, running: Running, step: ToolStep): ToolStep {
  running.deadline.stop()
  const late = () => stop(running, callFailed(sharing.settled.name, 'cancelled', 'nobody has answered its question'))
  const { tool, owner } = running
  return { ...(step as ToolStep & { type: 'input' }), state: PARKED + sharing.parking.add(running, { tool, owner }, late) }
}

/** A call that waits keeps no place from others; when it goes on it takes none: so many wait at most, and no more. */
function leave({ running: all, changed, settled }: Sharing, running: Running, end: End): void {
  all.delete(running)
  running.leave()
  running.leave = () => {}
  if (end === 'cut') stop(running, cancelled(settled.name))
  if (end === 'done') running.deadline.stop()
  changed()
}

/** How often a call that surely has not reached its server is sent again. */
const MOST_AGAIN = 2
/** How often a server may answer that it has too much to do, and how long it is left alone. */
const MOST_WAITS = 10
const WAIT_MS = 250

/** Sends a call, as often as it takes until it has surely arrived once. Throws MCP_CALL_FAILED. */
async function send(sharing: Sharing, running: Running, dialog: ToolDialog | undefined): Promise<ToolStep> {
  const { settled, places, supervisor } = sharing
  const { signal } = running.abort
  const place = places.enter(running.tool, signal)
  const leave = place instanceof Promise ? await place : place
  if (signal.aborted) leave()
  signal.throwIfAborted()
  running.leave = leave
  let round: ToolDialog | undefined = dialog
  for (let [again, waits] = [0, 0]; ; ) {
    const connection = supervisor.live ?? (await supervisor.soon(signal))
    const answer = await sendOnce(sharing, running, connection, round, again)
    if (answer === undefined) {
      again++
      continue
    }
    if ('error' in answer) throw refused(settled.name, running.tool, answer.error)
    const outcome = readOutcome(settled.name, running.tool, answer.result)
    if (outcome.type === 'result') return outcome
    if (Object.keys(outcome.requests).length > 0) return checked(settled.name, outcome, running.can)
    if (++waits > MOST_WAITS) throw protocolError(settled.name, `it put the call off ${MOST_WAITS} times`)
    await pause(sharing, signal)
    round = { can: running.can, ...(outcome.state !== undefined && { state: outcome.state }) }
  }
}

/** `undefined`: it has not been carried out, and is worth another attempt. */
async function sendOnce(
  sharing: Sharing,
  running: Running,
  connection: Connection,
  dialog: ToolDialog | undefined,
  again: number
): Promise<Answer | undefined> {
  const { settled, forget } = sharing
  const { signal } = running.abort
  if (dialog?.state !== undefined && !connection.stateless)
    throw callFailed(settled.name, 'cancelled', 'its question is no longer open', { delivered: 'no' })
  try {
    const asker = askerOf(running, connection.respond, noAnswer)
    const headers = connection.perRequest ? await headersOf(sharing, running, connection.stateless) : undefined
    const params = (token: string) => paramsOf(running, connection, dialog, token)
    const answer = await connection.exchange.request('tools/call', params, { signal, asker, ...(headers && { headers }) })
    if (!('error' in answer) || answer.error.code !== RPC.headerMismatch || again > 0) return answer
    forget()
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    if (!(await afterFailure(sharing, connection, error as SvcError, signal)) || again >= MOST_AGAIN) throw error
    return undefined
  }
}

function paramsOf(
  { tool, args, can, trace }: Running,
  { stateless, meta }: Connection,
  dialog: ToolDialog | undefined,
  token: string
): object {
  return {
    name: tool,
    arguments: args,
    ...(dialog?.answers !== undefined && { inputResponses: dialog.answers }),
    ...(dialog?.state !== undefined && { requestState: dialog.state }),
    // a server without a state logs only for who says so; one with a session always may
    _meta: { ...(stateless && { ...meta(can), [META.logLevel]: 'info' }), ...trace, progressToken: token },
  }
}

/** Over HTTP: the trace, and what a stateless server wants of the arguments there too. */
async function headersOf({ tool }: Sharing, { tool: name, args, abort, trace }: Running, stateless: boolean) {
  const known = stateless ? await tool(name, abort.signal) : undefined
  if (known === undefined || known.paramHeaders.length === 0) return trace
  return { ...paramHeaders(known.paramHeaders, args), ...trace }
}

/** Sees what a failure says of the connection; true where the call was surely not carried out, and another attempt may do better. */
async function afterFailure(
  { supervisor }: Sharing,
  connection: Connection,
  error: SvcError,
  signal: AbortSignal
): Promise<boolean> {
  if (codeOf(error) !== 'MCP_CALL_FAILED' || !connection.perRequest) return isUndelivered(error)
  const { class: kind, message } = failureOf(error)
  const status = statusOf(error)
  if (status === 404) supervisor.lost(connection, 'it has forgotten the session')
  // who answers at all is there: other calls go on
  else if (kind === 'connection_refused' && status === undefined) supervisor.lost(connection, message)
  else return kind === 'authentication_failed' && (await loggedIn(supervisor, connection, signal))
  return isUndelivered(error)
}

async function loggedIn(supervisor: Sharing['supervisor'], connection: Connection, signal: AbortSignal): Promise<boolean> {
  const done = await raced(connection.authorize(), signal)
  if (done) supervisor.lost(connection, 'somebody has logged in')
  return done
}

const LATER: ReadonlySet<McpErrorClass> = new Set(['connection_refused', 'protocol_error'])
const isUndelivered = (error: SvcError) => error.details?.['delivered'] === 'no' && LATER.has(failureOf(error).class)

function checked(name: string, step: ToolStep & { type: 'input' }, can: Running['can']): ToolStep {
  const impossible = Object.values(step.requests).find(one => !can.includes(one.method))
  if (impossible === undefined) return step
  throw protocolError(name, `it asks for ${impossible.method}, which it was told nobody can answer`)
}

const pause = ({ settled }: Sharing, signal: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const stop = settled.clock.after(WAIT_MS, resolve)
    const onAbort = () => {
      stop()
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', onAbort, { once: true })
  })
