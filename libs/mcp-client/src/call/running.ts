import type { InputRequest, Json, ToolDialog } from '@svc/core/contracts'
import { createDeadline, type Deadline } from '../clock.ts'
import type { Asker } from '../exchange.ts'
import { tooSlow } from '../failures.ts'
import { stripped } from '@svc/plugin-kit'
import { deeper } from '@svc/mcp-protocol'
import { DEPTH } from './result.ts'
import type { Settled } from '../settled.ts'
import { withDefaults } from './defaults.ts'
import { createJob, type Job } from './job.ts'
import type { Arguments } from '../client-types.ts'
import type { TraceWords } from './trace.ts'

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
