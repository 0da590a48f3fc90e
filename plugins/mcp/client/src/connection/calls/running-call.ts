import type { InputRequest, Json, ToolDialog, ToolStep } from '@svc/core/contracts'
import { deeper } from '@svc/mcp-protocol'
import { stripped } from '@svc/plugin-kit'
import type { Arguments, TraceHeaders } from '../client-types.ts'
import { tooSlow } from '../failures.ts'
import type { CallListener } from '../json-rpc.ts'
import type { ResolvedOptions } from '../options.ts'
import { createDeadline, type Deadline } from '../timing.ts'
import { MAX_DEPTH, noAnswer } from './messages.ts'

type JsonObject = { readonly [key: string]: Json | undefined }

/** A call from its start to its last step. It can wait for the answer of a user. */
export interface RunningCall {
  readonly tool: string
  readonly args: Arguments
  readonly owner: string | undefined
  readonly trace: TraceContext | undefined
  /** The questions that the caller supports now. */
  can: ToolDialog['can']
  readonly steps: StepQueue
  readonly deadline: Deadline
  /** Ends the call, and notifies the server. */
  readonly abort: AbortController
  /** Open questions of the server, each with a function that answers it. */
  readonly questions: Map<string, (answer: Json | undefined) => void>
  /** Leaves the concurrency limit. */
  leave: () => void
}

export function createRunningCall(
  options: ResolvedOptions,
  call: Pick<RunningCall, 'tool' | 'args' | 'owner' | 'trace' | 'can'>,
  timeoutMs: number
): RunningCall {
  const totalMs = Math.max(timeoutMs, options.maxTotalMs)
  const deadline = createDeadline(options.clock, timeoutMs, totalMs, ms => stop(running, tooSlow(options.name, ms)))
  const running: RunningCall = {
    ...call,
    steps: new StepQueue(),
    deadline,
    abort: new AbortController(),
    questions: new Map(),
    leave: () => {},
  }
  return running
}

/** Ends a call with this failure, if it has not ended yet. */
export function stop(running: RunningCall, failure: Error): void {
  running.deadline.stop()
  running.steps.fail(failure)
  running.abort.abort(failure)
}

/** Answers a request of the server (protocols before 2026). */
export type Respond = (id: string | number, answer: object) => void

/** Passes messages of the server to a running call. */
export function listenerOf(running: RunningCall, respond: Respond): CallListener {
  return {
    ...(running.owner !== undefined && { owner: running.owner }),
    step(step) {
      if (step.type === 'progress') running.deadline.extend()
      running.steps.push(stripped(step, () => {}))
    },
    ask(id, name, params) {
      const method = name as InputRequest['method']
      if (!running.can.includes(method) || deeper(params, MAX_DEPTH)) return respond(id, noAnswer(method))
      const key = String(id)
      running.questions.set(key, answer => {
        const filled = method === 'elicitation/create' ? withDefaults(params as JsonObject, answer) : answer
        respond(id, filled === undefined ? noAnswer(method) : { result: filled })
      })
      const shown = stripped(params, () => {})
      const request = { method, ...(shown !== undefined && { params: shown as JsonObject }) } as InputRequest
      running.steps.push({ type: 'input', requests: { [key]: request } })
    },
  }
}

/** Sends the answers to all open questions. */
export function answerAll({ questions }: RunningCall, answers: ToolDialog['answers'] = {}): void {
  for (const [key, answer] of questions) answer(Object.hasOwn(answers, key) ? answers[key] : undefined)
  questions.clear()
}

const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value)

/** An accepted form; empty fields get the defaults that the form declares. */
function withDefaults(params: JsonObject | undefined, answer: Json | undefined): Json | undefined {
  const properties = isObject(params?.['requestedSchema']) ? params['requestedSchema']['properties'] : undefined
  if (!isObject(answer) || answer['action'] !== 'accept' || !isObject(properties)) return answer
  const content = isObject(answer['content']) ? answer['content'] : {}
  const defaults = Object.entries(properties).flatMap(([name, one]) =>
    isObject(one) && one['default'] !== undefined ? [[name, one['default']] as const] : []
  )
  return { ...answer, content: { ...Object.fromEntries(defaults), ...content } }
}

/** Above this many unread steps, the oldest progress is dropped. */
const MAX_STEPS = 256

/** The steps of a call that its caller has not read yet. The last one is a result, a question or a failure. */
class StepQueue {
  readonly #steps: ToolStep[] = []
  #failure: Error | undefined
  #reader: { resolve(step: ToolStep): void; reject(error: Error): void } | undefined

  push(step: ToolStep): void {
    if (this.#reader !== undefined) {
      this.#reader.resolve(step)
      this.#reader = undefined
      return
    }
    if (this.#steps.length === MAX_STEPS) {
      const oldest = this.#steps.findIndex(one => one.type === 'progress' || one.type === 'log')
      this.#steps.splice(Math.max(0, oldest), 1)
    }
    this.#steps.push(step)
  }

  fail(error: Error): void {
    this.#failure ??= error
    this.#reader?.reject(this.#failure)
    this.#reader = undefined
  }

  /** Returns the next step; throws the failure. Only one reader waits at a time. */
  next(): Promise<ToolStep> {
    const step = this.#steps.shift()
    if (step !== undefined) return Promise.resolve(step)
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject }
    })
  }
}

/** Under the keys of SEP-414, which are the names of the headers as well. */
interface TraceContext {
  readonly [key: string]: string
}

const TRACE = /^[\da-f-]{55,128}$/
const STATE = /^[\x20-\x7e]{1,512}$/

/** The trace for the server, `undefined` if there is none, or if it is not valid in a header. */
export function traceContextOf({ trace, traceState }: TraceHeaders): TraceContext | undefined {
  if (trace === undefined || !TRACE.test(trace)) return undefined
  return traceState !== undefined && STATE.test(traceState)
    ? { traceparent: trace, tracestate: traceState }
    : { traceparent: trace }
}
