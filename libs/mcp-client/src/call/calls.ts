import type { ToolStep } from '@svc/core/contracts'
import type { ListedTool } from '@svc/mcp-protocol'
import type { Arguments, CallUse, StepOptions } from '../client-types.ts'
import { callFailed } from '@svc/mcp-protocol'
import { cancelled, failed } from '../failures.ts'
import { above0, type Settled } from '../settled.ts'
import type { Supervisor } from '../supervisor.ts'
import { createParking, type Parking } from './parking.ts'
import { createPlaces, type Places } from './places.ts'
import { answerAll, createRunning, type Running, stop } from './running.ts'
import { send } from './send.ts'
import { traceWords } from './trace.ts'

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
