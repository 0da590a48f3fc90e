import type { InputRequest, Json, ToolDialog, ToolStep } from '@svc/core/contracts'
import { deeper } from '@svc/mcp'
import { stripped } from '@svc/tool-parts'
import type { Arguments, Traced } from '../client-types.ts'
import { tooSlow } from '../failures.ts'
import type { Asker } from '../json-rpc.ts'
import type { Settled } from '../options.ts'
import { createDeadline, type Deadline } from '../timing.ts'
import { DEPTH } from './messages.ts'

type Params = InputRequest['params']

/** A call from its begin to its last word; it may wait for a person in between. */
export interface Running {
  readonly tool: string
  readonly args: Arguments
  readonly owner: string | undefined
  readonly trace: TraceWords | undefined
  /** What its caller can be asked for now. */
  can: ToolDialog['can']
  readonly job: Job
  readonly deadline: Deadline
  /** Ends it: the server is told. */
  readonly abort: AbortController
  /** What the server has asked and not been answered: how to answer it. */
  readonly questions: Map<string, (answer: Json | undefined) => void>
  /** Gives its place back. */
  leave: () => void
}

export function createRunning(
  settled: Settled,
  tool: string,
  args: Arguments,
  { owner, trace, timeoutMs, can }: Pick<Running, 'owner' | 'trace' | 'can'> & { timeoutMs: number }
): Running {
  const job = createJob()
  const abort = new AbortController()
  const most = Math.max(timeoutMs, settled.maxTotalMs)
  const deadline = createDeadline(settled.clock, timeoutMs, most, ms => stop(running, tooSlow(settled.name, ms)))
  const running: Running = { tool, args, owner, trace, can, job, deadline, abort, questions: new Map(), leave: () => {} }
  return running
}

/** Ends a call with this failure, where it has not ended yet. */
export function stop(running: Running, failure: Error): void {
  running.deadline.stop()
  running.job.fail(failure)
  running.abort.abort(failure)
}

/** Answers a request of the server, in the way of before 2026. */
export type Respond = (id: string | number, answer: object) => void
/** What is answered where nobody can be asked. */
export type NoAnswer = (method: InputRequest['method']) => object

/** How a running call hears of what the server tells and asks. */
export function askerOf(running: Running, respond: Respond, noAnswer: NoAnswer): Asker {
  return {
    ...(running.owner !== undefined && { owner: running.owner }),
    step(step) {
      if (step.type === 'progress') running.deadline.extend()
      running.job.push(stripped(step, () => {}))
    },
    ask(id, name, params) {
      const method = name as InputRequest['method']
      if (!running.can.includes(method) || deeper(params, DEPTH)) return respond(id, noAnswer(method))
      const key = String(id)
      running.questions.set(key, answer => {
        const filled = method === 'elicitation/create' ? withDefaults(params as Params, answer) : answer
        respond(id, filled === undefined ? noAnswer(method) : { result: filled })
      })
      const shown = stripped(params, () => {})
      const request = { method, ...(shown !== undefined && { params: shown as Params }) } as InputRequest
      running.job.push({ type: 'input', requests: { [key]: request } })
    },
  }
}

/** Tells the server what its questions were answered. */
export function answerAll({ questions }: Running, answers: ToolDialog['answers'] = {}): void {
  for (const [key, answer] of questions) answer(Object.hasOwn(answers, key) ? answers[key] : undefined)
  questions.clear()
}

/** What a running call has told and nobody has heard yet. Its last word is a result, a question, or a failure. */
interface Job {
  push(step: ToolStep): void
  fail(error: Error): void
  /** The next step; throws what it failed with. One waits at a time. */
  next(): Promise<ToolStep>
}

/** Progress that nobody takes is dropped, the oldest first. */
const MOST_STEPS = 256

function createJob(): Job {
  const steps: ToolStep[] = []
  let failure: Error | undefined
  let waiting: { resolve(step: ToolStep): void; reject(error: Error): void } | undefined

  return {
    push(step) {
      if (waiting !== undefined) {
        waiting.resolve(step)
        waiting = undefined
        return
      }
      if (steps.length === MOST_STEPS) drop(steps)
      steps.push(step)
    },
    fail(error) {
      failure ??= error
      waiting?.reject(failure)
      waiting = undefined
    },
    next() {
      const step = steps.shift()
      if (step !== undefined) return Promise.resolve(step)
      if (failure !== undefined) return Promise.reject(failure)
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject }
      })
    },
  }
}

function drop(steps: ToolStep[]): void {
  const oldest = steps.findIndex(step => step.type === 'progress' || step.type === 'log')
  steps.splice(Math.max(0, oldest), 1)
}

type Fact = { readonly [key: string]: Json | undefined }
const isObject = (value: unknown): value is Fact => typeof value === 'object' && value !== null && !Array.isArray(value)

/** An accepted form, with the defaults that it declares in the places left empty. */
function withDefaults(params: Fact | undefined, answer: Json | undefined): Json | undefined {
  const properties = isObject(params?.['requestedSchema']) ? params['requestedSchema']['properties'] : undefined
  if (!isObject(answer) || answer['action'] !== 'accept' || !isObject(properties)) return answer
  const content = isObject(answer['content']) ? answer['content'] : {}
  const defaults = Object.entries(properties).flatMap(([name, one]) =>
    isObject(one) && one['default'] !== undefined ? [[name, one['default']] as const] : []
  )
  return { ...answer, content: { ...Object.fromEntries(defaults), ...content } }
}

/** Under the keys of SEP-414, which are the names of the headers as well. */
interface TraceWords {
  readonly [key: string]: string
}

const TRACE = /^[\da-f-]{55,128}$/
const STATE = /^[\x20-\x7e]{1,512}$/

/** What a server is told of the trace; `undefined` where there is none, or what is none: it would spoil a header. */
export function traceWords({ trace, traceState }: Traced): TraceWords | undefined {
  if (trace === undefined || !TRACE.test(trace)) return undefined
  return traceState !== undefined && STATE.test(traceState)
    ? { traceparent: trace, tracestate: traceState }
    : { traceparent: trace }
}
