import { codeOf, type SvcError } from '@svc/core'
import type { McpErrorClass, ToolDialog, ToolStep } from '@svc/core/contracts'
import { callFailed, failureOf, META, paramHeaders, RPC } from '@svc/mcp-protocol'
import type { Connection } from '../connection.ts'
import type { Answer } from '../exchange.ts'
import { statusOf, protocolError, refused } from '../failures.ts'
import { noAnswer } from './capabilities.ts'
import { raced } from '../raced.ts'
import type { Sharing } from './calls.ts'
import { readOutcome } from './result.ts'
import { askerOf, type Running } from './running.ts'

/** How often a call that surely has not reached its server is sent again. */
const MOST_AGAIN = 2
/** How often a server may answer that it has too much to do, and how long it is left alone. */
const MOST_WAITS = 10
const WAIT_MS = 250

/** Sends a call, as often as it takes until it has surely arrived once. Throws MCP_CALL_FAILED. */
export async function send(sharing: Sharing, running: Running, dialog: ToolDialog | undefined): Promise<ToolStep> {
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
