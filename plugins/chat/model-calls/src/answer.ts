import type {
  FinishReason,
  Json,
  MessagePart,
  ModelEvent,
  ReasoningPart,
  StoredMessage,
  TextPart,
  ToolCallPart,
  Usage,
} from '@svc/core/contracts'
import { createActiveItems, isWithin, weightOf } from '@svc/plugin-kit'
import type { CallContext } from '@svc/core'
import { callTimeout, modelSilent } from './errors.ts'

/** The answer of a model in one call, assembled from its events. */
export class Answer {
  usage: Usage = { input: 0, output: 0 }
  finish: FinishReason | undefined = undefined
  stopText: string | undefined = undefined
  readonly #limit: number
  readonly #argumentsLimit: number
  #size = 0
  #calls: ToolCallPart[] = []
  #parts: MessagePart[] = []
  #text = ''
  #refusal: true | undefined = undefined
  #hasPieces = false
  #reasoning: ReasoningPart | undefined = undefined
  #providerData: Json | undefined = undefined

  constructor(limit: number, argumentsLimit: number) {
    this.#limit = limit
    this.#argumentsLimit = argumentsLimit
  }

  /** Maximum characters of the answer. */
  get limit(): number {
    return this.#limit
  }

  /** An empty answer with the same limits. */
  renewed(): Answer {
    return new Answer(this.#limit, this.#argumentsLimit)
  }

  /** True if the answer has any text, reasoning or tool call, or a piece of one. */
  get any(): boolean {
    return this.#text !== '' || this.#reasoning !== undefined || this.#parts.length > 0 || this.#hasPieces
  }

  /** Counts the size of an event. False if the answer exceeds its limit. */
  grows(event: ModelEvent): boolean {
    this.#size += event.type === 'text' ? event.text.length : sizeOf(event, this.#limit)
    return this.#size <= this.#limit
  }

  /** Adds an event. Further answers (`n`) are not kept: only their reader sees them. */
  take(event: ModelEvent): void {
    if ('choice' in event && event.choice !== undefined && event.choice > 0) {
      this.#hasPieces = true
      return
    }
    if (event.type === 'text') this.#say(event)
    else if (event.type === 'usage') this.usage = event.usage
    else if (event.type === 'finish') this.#finishWith(event)
    else if (event.type === 'reasoning') this.#reason(event)
    else if (event.type === 'tool_call') this.#call(event)
    else if (event.type === 'tool_call_delta') this.#hasPieces = true
  }

  message(provider: string): StoredMessage {
    const data = this.#providerData
    return { role: 'assistant', parts: this.#whole(), provider, ...(data === undefined ? {} : { providerData: data }) }
  }

  /** The whole answer as events; `undefined` before its finish event. */
  events(): readonly ModelEvent[] | undefined {
    if (this.finish === undefined) return undefined
    const data = this.#providerData
    return [
      ...(this.#whole() as (TextPart | ReasoningPart | ToolCallPart)[]),
      { type: 'usage', usage: this.usage },
      {
        type: 'finish',
        reason: this.finish,
        ...(this.stopText === undefined ? {} : { stopText: this.stopText }),
        ...(data === undefined ? {} : { providerData: data }),
      },
    ]
  }

  #say({ text, refusal }: TextPart) {
    if (refusal !== this.#refusal) this.#closeText()
    this.#refusal = refusal
    this.#text += text
  }

  #finishWith({ reason, stopText, providerData }: Extract<ModelEvent, { type: 'finish' }>) {
    ;[this.finish, this.stopText, this.#providerData] = [reason, stopText, providerData]
  }

  /** Joins pieces of reasoning. A piece with opaque data ends the part. */
  #reason(event: ReasoningPart) {
    // an empty piece only shows that the model is alive
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
      return { ...call, arguments: {}, invalid: beginningOf(call.invalid, limit) }
    if (isWithin(call.arguments, limit)) return call
    return { ...call, arguments: {}, invalid: `they have more than ${limit} characters, or are nested too deeply` }
  }

  /** Makes the id of a call unique, because results refer to it. */
  #unique(call: ToolCallPart): ToolCallPart {
    if (call.id !== '' && !this.#calls.some(item => item.id === call.id)) return call
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
    this.#parts.push({ type: 'text', text: this.#text, ...(this.#refusal && { refusal: this.#refusal }) })
    this.#text = ''
  }

  #closeReasoning() {
    if (this.#reasoning) this.#parts.push(this.#reasoning)
    this.#reasoning = undefined
  }
}

/** The size of a non-text event. Its provider data has no size limit of its own. */
function sizeOf(event: ModelEvent, limit: number): number {
  if (event.type === 'usage' || event.type === 'native') return 0
  if (event.type === 'tool_call_delta') return event.text.length
  if (event.type === 'logprobs' || event.type === 'citation') return weightOf(event, limit)
  const reasoning = event.type === 'reasoning' ? event.text.length : 0
  const call = event.type === 'tool_call' ? weightOf([event.arguments, event.invalid, event.id, event.tool], limit) : 0
  const data = 'providerData' in event && event.providerData !== undefined ? weightOf(event.providerData, limit) : 0
  return reasoning + call + data
}

const beginningOf = (text: string, limit: number) =>
  `${Buffer.from(text.slice(0, 200)).toString()}… (more than ${limit} characters)`

/** A piece of work with a time limit. The clock calls `checkTime` every 20 ms. */
interface Timed {
  checkTime(now: number): void
}

/** One coarse timer for all running model calls. A timer for each wait would mean a timer for each token. */
export interface Clock {
  /** Checks the work until the result is disposed. */
  watch(timed: Timed): Disposable
}

const STEP_MS = 20

export function createClock(): Clock {
  const running = createActiveItems<Timed>()
  let timer: NodeJS.Timeout | undefined
  const checkAll = () => {
    const now = performance.now()
    for (const timed of running.all()) timed.checkTime(now)
    if (running.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return {
    watch(timed) {
      timer ??= setInterval(checkAll, STEP_MS).unref()
      return running.add(timed)
    },
  }
}

/** Time limits of a model call. */
export interface CallLimits {
  /** Milliseconds to its first event. */
  readonly firstMs: number
  /** Milliseconds between events. */
  readonly betweenMs: number
  /** `until`: end of the call or its turn, as `performance.now()`. `timeoutMs`: that time limit. */
  readonly until: number
  readonly timeoutMs: number
}

/** A reader that pauses for this long stalls the upstream. A later failure can be the effect of the pause. */
const STALL_MS = 1_000

type Step = IteratorResult<ModelEvent>
type Took = (step: Step) => void
type Failed = (error: unknown) => void

/** Opens the events of a model. */
export type OpenEvents = (ctx: CallContext) => AsyncIterable<ModelEvent>

/** Reads the events of one model call. It does not wait for a provider that ignores the abort. */
export class ModelReading implements Timed {
  readonly #name: string
  readonly #limits: CallLimits
  readonly #watching: Disposable
  readonly #outer: AbortSignal
  readonly #ending = new AbortController()
  readonly #source: AsyncIterator<ModelEvent>
  #took: Took | undefined
  #failed: Failed | undefined
  #heard = 0
  #seen = 0
  #since = performance.now()
  /** Start of the reader's pause: no `next` call is open. */
  #left: number | undefined
  #stalled = false
  #over = false

  constructor(open: OpenEvents, name: string, limits: CallLimits, clock: Clock, ctx: CallContext) {
    this.#name = name
    this.#limits = limits
    this.#outer = ctx.signal
    this.#source = open({ ...ctx, signal: this.#ending.signal })[Symbol.asyncIterator]()
    ctx.signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#watching = clock.watch(this)
  }

  /** True after the reader stalled the call. A later failure then does not count against the model. */
  get stalled(): boolean {
    return this.#stalled
  }

  /** Requests the next event. Calls either `took` or `failed`, once. */
  next(took: Took, failed: Failed): void {
    if (this.#ending.signal.aborted) return failed(this.#ending.signal.reason)
    this.#took = took
    this.#failed = failed
    this.#source.next().then(this.#onStep, this.#onFail)
  }

  /** Releases the provider and aborts a call that has not ended. */
  close(): void {
    this.#watching[Symbol.dispose]()
    this.#outer.removeEventListener('abort', this.#onAbort)
    this.#took = this.#failed = undefined
    if (this.#over) return
    this.#over = true
    this.#ending.abort(new Error('the model call has ended'))
    // a provider that hangs in its own finally must not hold up the turn
    void this.#source.return?.().catch(() => {})
  }

  checkTime(now: number): void {
    const { firstMs, betweenMs, until, timeoutMs } = this.#limits
    const first = this.#heard === 0
    const limit = first ? firstMs : betweenMs
    const silent = this.#silence(now)
    if (now >= until) this.#stop(callTimeout(this.#name, timeoutMs, silent >= timeoutMs / 2 ? 'model' : 'turn'))
    else if (silent >= limit) this.#stop(modelSilent(this.#name, limit, first))
  }

  /** Milliseconds that the reader has waited for an event. Pauses of the reader do not count. */
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

/** Reads the events of an answer that a plugin supplied. */
export function readReady(events: readonly ModelEvent[]): Pick<ModelReading, 'next' | 'close' | 'stalled'> {
  const source = events[Symbol.iterator]()
  return { next: took => took(source.next() as Step), close: () => undefined, stalled: false }
}
