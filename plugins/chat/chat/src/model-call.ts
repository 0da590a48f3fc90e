import type { CallContext } from '@svc/core'
import type {
  ModelEvent,
  ModelRequest,
  Provider,
  FinishReason,
  Json,
  MessagePart,
  ReasoningPart,
  StoredMessage,
  TextPart,
  ToolCallPart,
  Usage,
} from '@svc/core/contracts'
import { modelSilent, turnTimeout } from './errors.ts'
import { isWithin, weightOf } from './messages.ts'

/** Something whose time is limited: looked at a few times a second while it lasts. */
interface Timed {
  look(now: number): void
}

/** One coarse timer for all model calls that are under way: timers of their own would cost more than many a call. */
export interface Clock {
  watch(one: Timed): void
  forget(one: Timed): void
}

const STEP_MS = 20

export function createClock(): Clock {
  const timed = new Set<Timed>()
  let timer: NodeJS.Timeout | undefined
  const look = () => {
    const now = performance.now()
    for (const one of timed) one.look(now)
    if (timed.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return {
    watch(one) {
      timed.add(one)
      timer ??= setInterval(look, STEP_MS).unref()
    },
    forget: one => void timed.delete(one),
  }
}

/** How long a model may take. */
export interface CallLimits {
  /** Milliseconds to its first event. */
  readonly firstMs: number
  /** Milliseconds between events. */
  readonly betweenMs: number
  /** `performance.now()` when the turn must have ended, and how long that is. */
  readonly until: number
  readonly turnMs: number
}

/** Who leaves the events for so long has made the upstream wait: what breaks then may break of that. */
const STALL_MS = 1_000

type Step = IteratorResult<ModelEvent>
type Took = (step: Step) => void
type Failed = (error: unknown) => void

/** Reads the events of one model call. A provider that neither answers nor heeds the abort is left behind, not waited for. */
export class ModelReading implements Timed {
  readonly #name: string
  readonly #limits: CallLimits
  readonly #clock: Clock
  readonly #outer: AbortSignal
  readonly #ending = new AbortController()
  readonly #source: AsyncIterator<ModelEvent>
  #took: Took | undefined
  #failed: Failed | undefined
  #heard = 0
  #seen = 0
  #since = performance.now()
  /** Since when no reader waits for an event. */
  #left: number | undefined
  #stalled = false
  #over = false

  constructor(provider: Provider, name: string, request: ModelRequest, limits: CallLimits, clock: Clock, ctx: CallContext) {
    this.#name = name
    this.#limits = limits
    this.#clock = clock
    this.#outer = ctx.signal
    this.#source = provider.chat(request, { ...ctx, signal: this.#ending.signal })[Symbol.asyncIterator]()
    ctx.signal.addEventListener('abort', this.#onAbort, { once: true })
    clock.watch(this)
  }

  /** True once its reader has kept it waiting: what fails then is not held against the model. */
  get stalled(): boolean {
    return this.#stalled
  }

  /** Asks for the next event: one of the two is called, once. */
  next(took: Took, failed: Failed): void {
    if (this.#ending.signal.aborted) return failed(this.#ending.signal.reason)
    this.#took = took
    this.#failed = failed
    this.#source.next().then(this.#onStep, this.#onFail)
  }

  /** Lets go of the provider: a call that has not ended is aborted. */
  close(): void {
    this.#clock.forget(this)
    this.#outer.removeEventListener('abort', this.#onAbort)
    this.#took = this.#failed = undefined
    if (this.#over) return
    this.#over = true
    this.#ending.abort(new Error('the model call has ended'))
    // a provider that hangs in its own finally must not hold up the turn
    void this.#source.return?.().catch(() => {})
  }

  look(now: number): void {
    const { firstMs, betweenMs, until, turnMs } = this.#limits
    const first = this.#heard === 0
    const limit = first ? firstMs : betweenMs
    const silent = this.#silence(now)
    if (now >= until) this.#stop(turnTimeout(this.#name, turnMs, silent >= turnMs / 2 ? 'model' : 'turn'))
    else if (silent >= limit) this.#stop(modelSilent(this.#name, limit, first))
  }

  /** Milliseconds for which an event has been waited for. Time that its reader takes is not the model's. */
  #silence(now: number): number {
    const isAwaited = this.#failed !== undefined
    const isStill = this.#heard === this.#seen
    if (isAwaited && isStill && this.#left === undefined) return now - this.#since
    if (isAwaited) this.#left = undefined
    else if (this.#left === undefined || !isStill) this.#left = now
    else if (now - this.#left >= STALL_MS) this.#stalled = true
    this.#seen = this.#heard
    this.#since = now
    return 0
  }

  readonly #onAbort = () => this.#stop(this.#outer.reason)

  readonly #onStep: Took = step => {
    this.#heard++
    if (step.done) this.#over = true
    const took = this.#took
    this.#took = this.#failed = undefined
    took?.(step)
  }

  readonly #onFail: Failed = error => {
    this.#over = true
    const failed = this.#failed
    this.#took = this.#failed = undefined
    failed?.(error)
  }

  #stop(reason: unknown) {
    const failed = this.#failed
    this.#took = this.#failed = undefined
    this.#ending.abort(reason)
    failed?.(reason)
  }
}

/** Reads events that are there already. */
export function readReady(events: readonly ModelEvent[]): Pick<ModelReading, 'next' | 'close' | 'stalled'> {
  const source = events[Symbol.iterator]()
  return { next: took => took(source.next() as Step), close: () => undefined, stalled: false }
}

/** What a model has said in one round, put together from its events. */
export class Answer {
  usage: Usage = { input: 0, output: 0 }
  finish: FinishReason | undefined = undefined
  readonly #limit: number
  readonly #argumentsLimit: number
  #size = 0
  #calls: ToolCallPart[] = []
  #parts: MessagePart[] = []
  #text = ''
  #reasoning: ReasoningPart | undefined = undefined
  #providerData: Json | undefined = undefined

  constructor(limit: number, argumentsLimit: number) {
    this.#limit = limit
    this.#argumentsLimit = argumentsLimit
  }

  /** The tools it wants. */
  get calls(): readonly ToolCallPart[] {
    return this.#calls
  }

  /** True once anything came that a caller or the model will miss. */
  get any(): boolean {
    return this.#text !== '' || this.#reasoning !== undefined || this.#parts.length > 0
  }

  /** Whether there is room for an event. */
  grows(event: ModelEvent): boolean {
    this.#size += event.type === 'text' ? event.text.length : sizeOf(event, this.#limit)
    return this.#size <= this.#limit
  }

  /** Takes an event; returns its text, where it has any. */
  take(event: ModelEvent): string | undefined {
    if (event.type === 'text') {
      this.#text += event.text
      return event.text
    }
    if (event.type === 'usage') this.usage = event.usage
    else if (event.type === 'finish') [this.finish, this.#providerData] = [event.reason, event.providerData]
    else if (event.type === 'reasoning') this.#reason(event)
    else this.#call(event)
    return undefined
  }

  message(provider: string): StoredMessage {
    const data = this.#providerData
    return { role: 'assistant', parts: this.#whole(), provider, ...(data === undefined ? {} : { providerData: data }) }
  }

  /** All of it as events; `undefined` before its finish. */
  events(): readonly ModelEvent[] | undefined {
    if (this.finish === undefined) return undefined
    const data = this.#providerData
    return [
      ...(this.#whole() as (TextPart | ReasoningPart | ToolCallPart)[]),
      { type: 'usage', usage: this.usage },
      { type: 'finish', reason: this.finish, ...(data === undefined ? {} : { providerData: data }) },
    ]
  }

  /** Forgets the tools it wants: it was to do without. */
  dropCalls(): void {
    this.#calls = []
    this.#parts = this.#parts.filter(part => part.type !== 'tool_call')
  }

  /** Reasoning comes in pieces; the one with opaque data ends what it belongs to. */
  #reason(event: ReasoningPart) {
    // a sign of life
    if (event.text === '' && event.providerData === undefined) return
    this.#closeText()
    this.#reasoning = this.#reasoning ? { ...event, text: this.#reasoning.text + event.text } : event
    if (event.providerData !== undefined) this.#closeReasoning()
  }

  #call(event: ToolCallPart) {
    const call = this.#unique(this.#bounded(event))
    this.#closeAll()
    this.#parts.push(call)
    this.#calls.push(call)
  }

  /** Drops arguments that are too long. The model receives their beginning. */
  #bounded(call: ToolCallPart): ToolCallPart {
    const limit = this.#argumentsLimit
    if (call.invalid !== undefined && call.invalid.length > limit)
      return { ...call, arguments: {}, invalid: begun(call.invalid, limit) }
    if (isWithin(call.arguments, limit)) return call
    return { ...call, arguments: {}, invalid: `they have more than ${limit} characters, or are nested too deeply` }
  }

  /** Makes the id of a call unique, because results refer to it. */
  #unique(call: ToolCallPart): ToolCallPart {
    if (call.id !== '' && !this.#calls.some(one => one.id === call.id)) return call
    return { ...call, id: `${call.id || 'call'}_${this.#calls.length + 1}` }
  }

  #whole(): MessagePart[] {
    this.#closeAll()
    return this.#parts
  }

  #closeAll() {
    this.#closeText()
    this.#closeReasoning()
  }

  #closeText() {
    if (this.#text === '') return
    this.#closeReasoning()
    this.#parts.push({ type: 'text', text: this.#text })
    this.#text = ''
  }

  #closeReasoning() {
    if (this.#reasoning) this.#parts.push(this.#reasoning)
    this.#reasoning = undefined
  }
}

/** What is beside its text is weighed: it is as long as its provider likes. */
function sizeOf(event: ModelEvent, limit: number): number {
  if (event.type === 'usage') return 0
  const words = event.type === 'reasoning' ? event.text.length : 0
  const given = event.type === 'tool_call' ? weightOf([event.arguments, event.invalid, event.id, event.tool], limit) : 0
  const data = 'providerData' in event && event.providerData !== undefined ? weightOf(event.providerData, limit) : 0
  return words + given + data
}

const begun = (text: string, limit: number) => `${Buffer.from(text.slice(0, 200)).toString()}… (more than ${limit} characters)`
