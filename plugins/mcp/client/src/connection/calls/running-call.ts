import type { InputRequest, Json, ToolDialog, ToolStep } from '@svc/core/contracts'
import { deeper } from '@svc/mcp-protocol'
import { stripped } from '@svc/plugin-kit'
import type { RunningCallContext } from '../client-types.ts'
import { aborted, tooSlow } from '../failures.ts'
import type { CallListener, Respond } from '../json-rpc.ts'
import type { ResolvedOptions } from '../options.ts'
import { MAX_DEPTH, noAnswer } from './messages.ts'

type JsonObject = { readonly [key: string]: Json | undefined }
type Question = Parameters<CallListener['ask']>[0]

/** Above this many unread steps, the oldest progress is dropped. */
const MAX_STEPS = 256

/** A call from its start to its last step: a result, a question or a failure. It can wait for the answer of a user. */
export class RunningCall implements CallListener {
  /** The questions that the caller supports now. */
  can: ToolDialog['can'] = []
  /** Whether the server can have received it. */
  isSent = false
  /** Leaves the concurrency limit. */
  leave: () => void = () => {}
  readonly tool: string
  readonly owner: string | undefined
  readonly #server: string
  /** Milliseconds without progress, and in all. */
  readonly #timeoutMs: number
  readonly #totalMs: number
  /** Ends the call, and notifies the server. */
  readonly #abort = new AbortController()
  /** Open questions of the server, each with a function that answers it. */
  readonly #questions = new Map<string, (answer: Json | undefined) => void>()
  /** The steps that the caller has not read yet. */
  readonly #steps: ToolStep[] = []
  #failure: Error | undefined
  #reader: PromiseWithResolvers<ToolStep> | undefined
  #timer: NodeJS.Timeout | undefined
  #endsAt: number
  #pausedAt: number | undefined

  constructor(options: ResolvedOptions, tool: string, owner: string | undefined, timeoutMs: number) {
    this.#server = options.name
    this.tool = tool
    this.owner = owner
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
  /** Whether the server waits for an answer of the caller. */
  get isAsked(): boolean {
    return this.#questions.size > 0
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

  /** Returns the next step; throws the failure. Only one reader waits at a time. */
  next(): Promise<ToolStep> {
    const step = this.#steps.shift()
    if (step !== undefined) return Promise.resolve(step)
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#reader = Promise.withResolvers()
    return this.#reader.promise
  }

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

  /** Ends the call with this failure, if it has not ended yet. */
  stop(failure: Error): void {
    this.pause()
    this.#failure ??= failure
    this.#reader?.reject(this.#failure)
    this.#reader = undefined
    this.#abort.abort(failure)
  }

  /** Ends the call, because its caller does not wait any longer. */
  abandon(reason?: unknown): void {
    this.stop(aborted(this.#server, reason, this.#timeoutMs, this.#delivered))
  }

  step(step: ToolStep): void {
    if (step.type === 'progress') this.extend()
    this.push(stripped(step, () => {}))
  }

  ask({ id, method: name, params }: Question, respond: Respond): void {
    const method = name as InputRequest['method']
    if (!this.can.includes(method) || deeper(params, MAX_DEPTH)) return respond(noAnswer(method))
    const key = String(id)
    this.#questions.set(key, answer => {
      const filled = method === 'elicitation/create' ? withDefaults(params as JsonObject, answer) : answer
      respond(filled === undefined ? noAnswer(method) : { result: filled })
    })
    const shown = stripped(params, () => {})
    const request = { method, ...(shown !== undefined && { params: shown as JsonObject }) } as InputRequest
    this.push({ type: 'input', requests: { [key]: request } })
  }

  /** Goes on with the answers to all open questions. */
  resume({ can, answers = {} }: ToolDialog): void {
    this.can = can
    this.extend()
    for (const [key, answer] of this.#questions) answer(Object.hasOwn(answers, key) ? answers[key] : undefined)
    this.#questions.clear()
  }
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

/** Under the keys of SEP-414, which are the names of the headers as well. */
export interface TraceContext {
  readonly [key: string]: string
}

const TRACE = /^[\da-f-]{55,128}$/
const STATE = /^[\x20-\x7e]{1,512}$/

/** The trace for the server, `undefined` if there is none, or if it is not valid in a header. */
export function traceContextOf({ trace, traceState }: RunningCallContext): TraceContext | undefined {
  if (trace === undefined || !TRACE.test(trace)) return undefined
  return traceState !== undefined && STATE.test(traceState)
    ? { traceparent: trace, tracestate: traceState }
    : { traceparent: trace }
}
