import type { InputRequest, Json, ToolDialog, ToolStep } from '@svc/core/contracts'
import { deeper, MAX_DEPTH, responseTo, StepQueue } from '@svc/mcp-protocol'
import { definedOf, stripped } from '@svc/plugin-kit'
import type { Arguments, StepOptions } from '../client-types.ts'
import { aborted, tooSlow } from '../failures.ts'
import type { ResolvedOptions } from '../resolved-options.ts'

/** A request of the server for input. */
interface Question {
  readonly id: string | number
  readonly method: InputRequest['method']
  readonly params: unknown
}

/** What a caller asks for. */
export interface CallRequest extends StepOptions {
  readonly tool: string
  readonly args: Arguments
  /** Also the keys of the trace in `_meta` (SEP-414). */
  readonly trace: Readonly<Record<string, string>>
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
  /** Milliseconds without progress, and in all. */
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

  constructor(options: ResolvedOptions, request: CallRequest, timeoutMs: number, park: () => string) {
    super()
    this.#server = options.name
    this.request = request
    this.can = request.dialog?.can ?? []
    this.#park = park
    this.#timeoutMs = timeoutMs
    this.#totalMs = Math.max(timeoutMs, options.maxTotalMs)
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
