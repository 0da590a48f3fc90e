import { randomUUID } from 'node:crypto'
import type { CallContext, OpenSpan } from '@svc/core'
import type { InputRequest, Json, McpCallOptions, McpErrorClass, ToolDialog, ToolStep } from '@svc/core/contracts'
import { definedOf, stripped } from '@svc/plugin-kit'
import { MAX_DEPTH, responseTo } from './answers.ts'
import { aborted, callFailed, failureOf, questionClosed, tooSlow } from './failures.ts'
import type { McpLimits } from './limits.ts'
import { deeper } from './listed-tool.ts'

/** How the steps of a call ended: with a final step, with an error, without a final step, or because the reader stopped early. */
export type StepsEnd = { readonly last: ToolStep } | { readonly thrown: unknown } | 'incomplete' | 'abandoned'

type Steps = AsyncIterable<ToolStep>
const DONE = { done: true, value: undefined } as const

/**
 * Wraps the steps of a call and reports their end exactly once, before the reader sees it. The first `next` calls `open`, which begins the call.
 * This is a hand-written iterator: nested generators in every layer of a call cost more than the work of the layers.
 */
export const watchedSteps = (open: () => Steps | Promise<Steps>, ended: (end: StepsEnd) => void): Steps => ({
  [Symbol.asyncIterator]: () => readingOf(open, ended),
})

/** The steps of a call in a span, which lasts from the first read to the end. */
export function spannedSteps(begin: () => OpenSpan, open: (ctx: CallContext) => Steps | Promise<Steps>): Steps {
  let span: OpenSpan | undefined
  const start = () => open((span = begin()).ctx)
  return watchedSteps(start, end => {
    const failure = failureIn(end)
    if (failure !== undefined) span?.fail(failure)
    span?.end()
  })
}

function failureIn(end: StepsEnd): unknown {
  if (end === 'abandoned') return 'cancelled'
  if (typeof end === 'string') return end
  if ('thrown' in end) return end.thrown
  return isFailedResult(end.last) ? 'failed' : undefined
}

/** The error class of a call that has ended, for metrics. */
export function errorClassOf(end: StepsEnd): McpErrorClass | undefined {
  if (typeof end === 'string') return undefined
  if ('thrown' in end) return failureOf(end.thrown).class
  return isFailedResult(end.last) ? 'tool_error' : undefined
}

const isFailedResult = (step: ToolStep) => step.type === 'result' && step.result.isError === true

function readingOf(open: () => Steps | Promise<Steps>, ended: (end: StepsEnd) => void): AsyncIterator<ToolStep> {
  let source: AsyncIterator<ToolStep> | undefined
  let state: 'new' | 'begun' | 'reported' = 'new'
  let isOver = false
  const report = (end: StepsEnd) => {
    if (state === 'begun') ended(end)
    state = 'reported'
  }
  return {
    async next() {
      if (isOver) return DONE
      try {
        if (source === undefined) {
          state = 'begun'
          const opened = open()
          const steps = opened instanceof Promise ? await opened : opened
          // the reader can have stopped meanwhile: the call must not begin then
          if (isOver) return DONE
          source = steps[Symbol.asyncIterator]()
        }
        const item = await source.next()
        if (item.done) report('incomplete')
        else if (isLast(item.value)) report({ last: item.value })
        return item
      } catch (error) {
        isOver = true
        report({ thrown: error })
        throw error
      }
    },
    return() {
      isOver = true
      report('abandoned')
      return source?.return?.() ?? Promise.resolve(DONE)
    },
  }
}

const isLast = ({ type }: ToolStep) => type === 'result' || type === 'input'

/** Above this many unread steps, the oldest progress is dropped. */
const MAX_STEPS = 256

/** The steps of a call that its reader has not read yet. It ends with a result, a question or a failure. */
export class StepQueue implements AsyncIterable<ToolStep>, AsyncIterator<ToolStep> {
  readonly #steps: ToolStep[] = []
  #failure: Error | undefined
  /** The reader has read the last step. */
  #isOver = false
  #reader: PromiseWithResolvers<IteratorResult<ToolStep>> | undefined;

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Returns the next step; throws the failure. Only one reader waits at a time. */
  next(): Promise<IteratorResult<ToolStep>> {
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined })
    const value = this.#steps.shift()
    if (value !== undefined) return Promise.resolve(this.#read(value))
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#reader = Promise.withResolvers()
    return this.#reader.promise
  }

  push(step: ToolStep): void {
    if (this.#reader !== undefined) {
      this.#reader.resolve(this.#read(step))
      this.#reader = undefined
      return
    }
    if (this.#steps.length === MAX_STEPS) {
      const oldest = this.#steps.findIndex(one => one.type === 'progress' || one.type === 'log')
      this.#steps.splice(Math.max(0, oldest), 1)
    }
    this.#steps.push(step)
  }

  /** Ends the steps with a failure, if there is none yet. */
  fail(failure: Error): void {
    this.#failure ??= failure
    this.#reader?.reject(this.#failure)
    this.#reader = undefined
  }

  /** Goes on after a question. */
  reopen(): void {
    this.#isOver = false
  }

  #read(value: ToolStep): IteratorResult<ToolStep> {
    this.#isOver = value.type === 'result' || value.type === 'input'
    return { done: false, value }
  }
}

/** A request of the server for input. */
interface Question {
  readonly id: string | number
  readonly method: InputRequest['method']
  readonly params: unknown
}

export interface StepOptions extends McpCallOptions {
  /** The caller. Only the same caller can answer a question of the server. */
  readonly owner?: string
  /** Called before the call is sent again over another connection, whose server can have other tools. Its error ends the call. */
  readonly beforeResend?: (signal: AbortSignal) => Promise<void>
}

/** What a caller asks for. */
export interface CallRequest extends StepOptions {
  readonly tool: string
  readonly args: { readonly [name: string]: Json | undefined }
  /** Also the keys of the trace in `_meta` (SEP-414). */
  readonly trace: Readonly<Record<string, string>>
}

/** Milliseconds of a call without progress, and in all. */
interface CallTimes {
  readonly timeoutMs: number
  readonly totalMs: number
}

/** A call from its start to its last step: a result, a question or a failure. It can wait for the answer of a user. */
export class RunningCall extends StepQueue {
  /** The questions that the caller supports now. */
  can: ToolDialog['can']
  /** Whether the server can have received it. */
  isSent = false
  /** Leaves the concurrency limit. */
  leave: () => void = () => {}
  readonly request: CallRequest
  readonly #server: string
  readonly #timeoutMs: number
  readonly #totalMs: number
  /** Ends the call, and notifies the server. */
  readonly #abort = new AbortController()
  /** Open questions of the server, each with a function that answers it. */
  readonly #questions = new Map<string, (answer: Json | undefined) => void>()
  /** Returns the state with which the caller answers a question. Throws MCP_CALL_FAILED. */
  readonly #park: () => string
  #timer: NodeJS.Timeout | undefined
  #endsAt: number
  #pausedAt: number | undefined

  constructor(server: string, request: CallRequest, { timeoutMs, totalMs }: CallTimes, park: () => string) {
    super()
    this.#server = server
    this.request = request
    this.can = request.dialog?.can ?? []
    this.#park = park
    this.#timeoutMs = timeoutMs
    this.#totalMs = Math.max(timeoutMs, totalMs)
    this.#endsAt = performance.now() + this.#totalMs
    this.extend()
  }

  get #delivered() {
    return this.isSent ? 'maybe' : 'no'
  }
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Starts its time limit again, but never past the total; also ends a pause. */
  extend(): void {
    clearTimeout(this.#timer)
    const now = performance.now()
    if (this.#pausedAt !== undefined) this.#endsAt += now - this.#pausedAt
    this.#pausedAt = undefined
    const left = Math.min(this.#timeoutMs, Math.max(0, this.#endsAt - now))
    const limitMs = left < this.#timeoutMs ? this.#totalMs : this.#timeoutMs
    this.#timer = setTimeout(() => this.stop(tooSlow(this.#server, limitMs, this.#delivered)), left)
  }

  /** Stops its time limit until `extend`. */
  pause(): void {
    this.#pausedAt ??= performance.now()
    clearTimeout(this.#timer)
  }

  /** Ends the call with this failure, if it has not ended yet. */
  stop(failure: Error): void {
    this.pause()
    this.fail(failure)
    this.#abort.abort(failure)
  }

  /** Ends the call, because its caller does not wait any longer. */
  abandon(reason?: unknown): void {
    this.stop(aborted(this.#server, reason, this.#timeoutMs, this.#delivered))
  }

  /** Ends the call when its caller aborts. Returns a function that stops this. */
  watch(signal: AbortSignal): () => void {
    const onAbort = () => this.abandon(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    return () => signal.removeEventListener('abort', onAbort)
  }

  /** The server reports progress, or a log message. */
  step(step: ToolStep): void {
    if (step.type === 'progress') this.extend()
    this.push(stripped(step, () => {}))
  }

  /** The server asks for input (protocols before 2026). */
  ask(question: Question, respond: (answer: object) => void): void {
    const { id, method, params } = question
    if (!this.can.includes(method) || deeper(params, MAX_DEPTH)) return respond(responseTo(question, undefined))
    const key = String(id)
    this.#questions.set(key, answer => respond(responseTo(question, answer)))
    const request = { method, ...definedOf({ params: stripped(params, () => {}) }) } as InputRequest
    try {
      this.push({ type: 'input', requests: { [key]: request }, state: this.#park() })
    } catch (error) {
      this.stop(error as Error)
    }
  }

  /** Goes on with the answers to all open questions. */
  resume({ can, answers = {} }: ToolDialog): void {
    this.can = can
    this.reopen()
    this.extend()
    for (const [key, answer] of this.#questions) answer(Object.hasOwn(answers, key) ? answers[key] : undefined)
    this.#questions.clear()
  }
}

/** The prefix of the states of parked calls; a stateless server makes its own. */
const PARKED = 'svc-call:'

/** The calls of a server that wait for the answer of a user (protocols before 2026, where the call stays open meanwhile). */
export class ParkedCalls {
  readonly #server: string
  readonly #limits: Pick<McpLimits, 'parked' | 'parkedMs'>
  readonly #calls = new Map<string, { readonly call: RunningCall; readonly timer: NodeJS.Timeout }>()

  constructor(server: string, limits: Pick<McpLimits, 'parked' | 'parkedMs'>) {
    this.#server = server
    this.#limits = limits
  }

  get size(): number {
    return this.#calls.size
  }

  /** Returns the state with which the caller resumes the call. Throws MCP_CALL_FAILED. */
  park(call: RunningCall): string {
    const { parked, parkedMs } = this.#limits
    if (this.size >= parked) throw callFailed(this.#server, 'cancelled', `${parked} calls are already waiting for an answer`)
    const state = PARKED + randomUUID()
    const late = () => {
      this.#calls.delete(state)
      call.stop(callFailed(this.#server, 'cancelled', 'its question was not answered in time'))
    }
    this.#calls.set(state, { call, timer: setTimeout(late, parkedMs) })
    return state
  }

  /** Resumes the call that a request answers; `undefined` for a new call. Only the same caller can, with the same tool. Throws MCP_CALL_FAILED. */
  resume({ tool, owner, dialog }: CallRequest): RunningCall | undefined {
    if (!dialog?.state?.startsWith(PARKED)) return undefined
    const { call } = this.#calls.get(dialog.state) ?? {}
    if (call?.request.tool !== tool || call.request.owner !== owner) throw questionClosed(this.#server)
    this.#remove(dialog.state)
    call.resume(dialog)
    return call
  }

  /** Removes a call whose question no caller has read, or all calls. They are not stopped. */
  remove(call?: RunningCall): void {
    for (const [state, one] of this.#calls) if (call === undefined || one.call === call) this.#remove(state)
  }

  #remove(state: string): void {
    clearTimeout(this.#calls.get(state)?.timer)
    this.#calls.delete(state)
  }
}
