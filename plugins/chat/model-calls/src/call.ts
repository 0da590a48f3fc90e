import {
  codeOf,
  type Events,
  type HookCallers,
  type Log,
  messageOf,
  type OpenSpan,
  pause,
  type CallContext,
  type SlotView,
  type StartSpan,
} from '@svc/core'
import {
  type FailureAnswer,
  type ModelAlias,
  type ModelAnswer,
  ModelAttemptFailed,
  type ModelCall,
  type ModelCallBegun,
  type ModelCallEnd,
  type ModelCallEvent,
  type ModelCallHooks,
  type ModelCallOrder,
  ModelCancelled,
  ModelCompleted,
  type ModelDone,
  type ModelEvent,
  ModelFallback,
  type ModelFailure,
  type ModelRef,
  type ModelRequest,
  ModelRetried,
  type Prices,
  type Provider,
  type RequestField,
  type Selected,
  type Usage,
  type WorkerMetrics,
} from '@svc/core/contracts'
import { Answer, type Clock, ModelReading, type OpenEvents, readReady } from './answer.ts'
import { countTokens, fitContextWindow, tokensOf } from './context-window.ts'
import {
  answerTooLong,
  budgetExhausted,
  costExhausted,
  failureOf,
  modelBroke,
  modelFailed,
  noEmbeddings,
  priceUnknown,
  tooManySwitches,
  toPublicError,
} from './errors.ts'
import { type ModelCandidate, type CandidateLookup, candidateOf, fitRequest, sameModel } from './request.ts'
import type { CallsConfig } from './settings.ts'

/** What all calls share. */
export interface CallServices {
  readonly config: Readonly<CallsConfig>
  readonly hooks: HookCallers<ModelCallHooks>
  readonly events: Events
  readonly providers: SlotView<Provider>
  readonly aliases: SlotView<ModelAlias>
  readonly counts: Pick<ProviderCounts, 'asked'>
  readonly prices: Prices | undefined
  readonly clock: Clock
  readonly log: Log
  readonly span: StartSpan
  /** For work that must finish after the caller aborts. */
  readonly lasting: CallContext
}

/** An order with its selection, and how its events are opened if it is no chat. */
export interface CallJob {
  readonly order: ModelCallOrder
  readonly selected: Selected
  /** Opens the events of embeddings, in place of `Provider.chat`. */
  readonly open?: (at: ModelCandidate, ctx: CallContext) => AsyncIterable<ModelEvent>
}

type Reading = Pick<ModelReading, 'next' | 'close' | 'stalled'>
type Step = IteratorResult<ModelCallEvent, undefined>

/** Maximum calls, against a plugin that always retries. */
const TRIES = 100
/** Maximum switches to another model before a call. */
const MOVES = 16
const NONE: readonly ModelRef[] = []
const SINGLE = { single: true } as const
const OVER: Step = { done: true, value: undefined }
/** Codes of errors in the caller's request. */
const CALLER_ERRORS: ReadonlySet<string> = new Set(['INVALID_VALUE', 'BUDGET_EXHAUSTED', 'PRICE_UNKNOWN'])

/**
 * One call of a model with all its attempts: calls the model and passes on its events. Plugins decide about retries and other
 * models. A hand-written iterator: it costs one promise for each event, and its handlers are created once for each call.
 */
export class ModelCallRun implements AsyncIterableIterator<ModelCallEvent, undefined> {
  readonly #services: CallServices
  readonly #job: CallJob
  readonly #ctx: CallContext
  readonly #limits: CallTimes
  readonly #fields: ReadonlySet<RequestField>
  readonly #turn: string
  readonly #tried: ModelRef[]
  readonly #begun = performance.now()
  /** The models that failed in this call. */
  readonly #failed: ModelRef[] = []
  /** The usage of attempts that failed. */
  #spent: Usage = { input: 0, output: 0 }
  /** The cost of attempts that failed, at models with a price. */
  #cost: number | undefined
  #answer: Answer
  /** The model that answers now: the selected model, or another after a failure. */
  #who: ModelRef
  #known: ModelCandidate | undefined
  #dropped: readonly RequestField[] = []
  /** The budget that limits the output. */
  #limitedBy: ModelCallEnd['cutBy']
  #request: ModelRequest | undefined
  #reading: Reading | undefined
  /** The running call. An error while it is set is a failure of the model. */
  #call: ModelCall | undefined
  /** The span of the running attempt. */
  #span: OpenSpan | undefined
  #answered = false
  #asked = 0
  #firstMs = -1
  #start: ModelCallBegun | undefined
  #end: ModelCallEnd | undefined
  /** What the stream throws after its end. */
  #error: { readonly reason: unknown } | undefined
  #isOver = false
  #resolve: ((step: Step) => void) | undefined
  #reject: ((error: unknown) => void) | undefined

  /** The first `next` calls the model. */
  constructor(services: CallServices, job: CallJob, ctx: CallContext) {
    const { limits = {}, step, defaults } = job.order
    this.#services = services
    this.#job = job
    this.#ctx = ctx
    this.#limits = timesOf(services.config, job.order)
    this.#fields = new Set(defaults)
    this.#turn = step?.turn ?? crypto.randomUUID()
    this.#tried = [...(step?.tried ?? NONE)]
    this.#who = step?.model ?? { provider: job.selected.provider, model: job.selected.model }
    this.#answer = new Answer(
      limits.answerLimit ?? services.config.answer_limit,
      limits.argumentsLimit ?? services.config.tool_arguments_limit
    )
  }

  next(): Promise<Step> {
    return new Promise(this.#wait)
  }

  /** The reader leaves: aborts the call and reports its end. */
  async return(): Promise<Step> {
    this.#isOver = true
    if (!this.#end) await this.#finish('cancelled')
    // a read that still waits would never end
    this.#resolve?.(OVER)
    return OVER
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  readonly #wait = (resolve: (step: Step) => void, reject: (error: unknown) => void) => {
    if (this.#isOver) return resolve(OVER)
    if (this.#end) return this.#leave(resolve, reject)
    this.#resolve = resolve
    this.#reject = reject
    this.#read()
  }

  /** After the end event: the error of the call, or the end of the stream. */
  #leave(resolve: (step: Step) => void, reject: (error: unknown) => void) {
    this.#isOver = true
    if (this.#error) reject(this.#error.reason)
    else resolve(OVER)
  }

  #read() {
    if (this.#reading) return this.#reading.next(this.#onStep, this.#onFail)
    this.#begin().then(reading => {
      if (this.#isOver) return reading.close()
      this.#reading = reading
      if (this.#start) this.#pass(this.#start)
    }, this.#onFail)
  }

  #pass(value: ModelCallEvent) {
    this.#resolve?.({ done: false, value })
  }

  readonly #onStep = (step: IteratorResult<ModelEvent>) => {
    if (this.#firstMs < 0) this.#firstMs = performance.now() - this.#asked
    if (!step.done) {
      if (!this.#answer.grows(step.value)) return this.#onFail(answerTooLong(this.#who.provider, this.#answer.limit))
      this.#answer.take(step.value)
      return this.#pass(step.value)
    }
    if (this.#answer.finish === undefined)
      return this.#onFail(modelBroke(this.#who.provider, 'ended its answer without a finish'))
    this.#finish('completed').then(end => this.#pass(end), this.#onFail)
  }

  readonly #onFail = (error: unknown) => {
    this.#recover(error).then(
      () => this.#read(),
      (reason: unknown) => this.#fail(reason)
    )
  }

  /** Passes on the end of a call that failed. The next `next` throws its error. */
  #fail(reason: unknown) {
    this.#error = { reason }
    this.#finish(this.#ctx.signal.aborted ? 'cancelled' : 'failed', reason).then(
      end => this.#pass(end),
      (error: unknown) => this.#reject?.(error)
    )
  }

  async #begin(): Promise<Reading> {
    this.#asked = performance.now()
    this.#firstMs = -1
    for (let moves = 0; ; moves++) {
      // an error of a tap is not a failure of the model, so `#call` is unset while the taps run
      const { at, call } = await this.#plan()
      const answer = await this.#services.hooks.modelCall(call, this.#ctx)
      this.#call = call
      this.#request = call.request
      const reading = this.#take(answer, at, call.request)
      if (reading) {
        const dropped = this.#dropped.length > 0 ? { dropped: this.#dropped } : {}
        this.#start = { type: 'start', provider: at.provider, model: at.model, ...dropped }
        return reading
      }
      if (moves === MOVES) throw tooManySwitches(at.provider)
      this.#call = undefined
    }
  }

  /** Opens the source of the answer; `undefined` if a tap chose another model. */
  #take(answer: ModelAnswer | undefined, at: ModelCandidate, request: ModelRequest): Reading | undefined {
    this.#answered = answer !== undefined && !('model' in answer)
    if (!answer || ('model' in answer && sameModel(answer, at))) return this.#ask(at, request)
    if ('events' in answer) return readReady(answer.events)
    if ('failure' in answer) throw modelFailed(at.provider, answer.failure, answer.message)
    this.#who = { provider: answer.provider, model: answer.model }
    return undefined
  }

  #ask(at: ModelCandidate, request: ModelRequest): ModelReading {
    const { counts, clock } = this.#services
    const { open } = this.#job
    counts.asked(at.provider)
    const events: OpenEvents = open ? ctx => open(at, ctx) : ctx => at.source.chat(request, ctx)
    this.#span = this.#services.span(`${open ? 'embeddings' : 'chat'} ${at.model}`, this.#ctx, { kind: 'client' })
    return new ModelReading(events, at.provider, this.#limits, clock, this.#span.ctx)
  }

  /** Resolves the model and builds its request. */
  async #plan(): Promise<{ at: ModelCandidate; call: ModelCall }> {
    const { request: asked, history, budget, costBudget } = this.#job.order
    let at: ModelCandidate | undefined
    let request: ModelRequest = { ...asked, model: this.#who.model }
    try {
      at = await candidateOf(this.#lookup(), this.#who, this.#known, this.#ctx)
      this.#known = at
      this.#who = { provider: at.provider, model: at.model }
      if (this.#job.open && !at.features.supports?.includes('embeddings')) throw noEmbeddings(at.model)
      const isSelected = sameModel(at, this.#job.selected)
      const fitted = fitRequest(asked, at, { defaults: this.#fields, isSelected })
      this.#dropped = fitted.dropped
      request = await fitContextWindow(fitted.request, history, at, this.#ctx)
      const { input, output } = this.#spent
      this.#limitedBy = undefined
      if (budget) {
        const whole = request
        request = await fitTokenBudget(whole, withAttempts(budget, input + output), at, this.#ctx)
        if (isLess(request, whole, at)) this.#limitedBy = 'tokens'
      }
      if (costBudget) {
        const whole = request
        request = await fitCostBudget(whole, withAttempts(costBudget, this.#cost ?? 0), at, this.#services.prices, this.#ctx)
        if (isLess(request, whole, at)) this.#limitedBy = 'cost'
      }
      return { at, call: this.#callOf(request) }
    } catch (error) {
      // a request that the model cannot serve is not a failure of the model
      if (!at || !CALLER_ERRORS.has(codeOf(error) ?? '')) this.#call = this.#callOf(request)
      throw error
    }
  }

  #lookup(): CandidateLookup {
    const { providers, aliases } = this.#services
    return { providers, aliases, selected: this.#job.selected, ...this.#limits }
  }

  #callOf(request: ModelRequest): ModelCall {
    const { selected, open } = this.#job
    const who = this.#who
    return {
      turn: this.#turn,
      ...(this.#job.order.step ? {} : SINGLE),
      selected: sameModel(selected, who) ? selected : { ...selected, ...who },
      request,
      kind: open ? 'embed' : 'chat',
      round: this.#job.order.step?.round ?? 1,
      attempt: this.#failed.length === 0 ? 1 : 1 + this.#failed.filter(item => sameModel(item, who)).length,
      tried: this.#tried.length === 0 ? NONE : [...this.#tried],
    }
  }

  /** Handles a failed call. Returns if the call is tried again; throws if it ends. */
  async #recover(error: unknown): Promise<void> {
    const isStalled = this.#reading?.stalled === true
    this.#reading?.close()
    this.#reading = undefined
    if (this.#ctx.signal.aborted) throw this.#ctx.signal.reason
    if (!this.#call) throw error
    const who = this.#who
    const failure = await this.#measured({ ...failureOf(error), ...(isStalled && { requestOnly: true }) })
    const message = this.#messageOf(error)
    const recovery = this.#answer.any
      ? undefined
      : await this.#services.hooks.modelFailed({ ...this.#call, failure, message }, this.#ctx)
    await this.#settle()
    const call = this.#call
    const cost = await this.#report('failed', failure)
    this.#failed.push(who)
    const waitMs = recovery?.waitMs ?? 0
    if (!recovery || this.#failed.length >= TRIES || performance.now() + waitMs >= this.#limits.until)
      throw modelFailed(who.provider, failure, message, error)
    this.#publishRecovery(call, recovery)
    // a call that failed after its finish event has already reported usage
    this.#spent = sumOf(this.#spent, this.#answer.usage)
    this.#cost = cost
    this.#answer = this.#answer.renewed()
    if (waitMs > 0) await pause(waitMs, this.#ctx.signal)
    if (!('model' in recovery)) return
    if (!sameModel(recovery, who)) this.#tried.push(who)
    this.#who = { provider: recovery.provider, model: recovery.model }
  }

  /** Adds the token count to `context_too_long`, because an upstream often omits it. */
  async #measured(failure: ModelFailure): Promise<ModelFailure> {
    if (failure.kind !== 'context_too_long' || failure.count !== undefined || !this.#known || !this.#call) return failure
    const count = await tokensOf(this.#call.request, this.#known, this.#ctx)
    return { limit: this.#known.info?.context ?? count, ...failure, count }
  }

  /** Passes on only messages of MODEL_FAILED. Another error of a provider can contain secrets. */
  #messageOf(error: unknown): string {
    if (codeOf(error) === 'MODEL_FAILED') return messageOf(error)
    const { provider } = this.#who
    this.#services.log.error({ err: error, provider, request_id: this.#ctx.requestId }, 'a provider broke its contract')
    return `provider "${provider}" failed`
  }

  /** Counts the tokens of a call that produced output and ended before its provider reported usage. */
  async #settle(): Promise<void> {
    const answer = this.#answer
    const { input, output } = answer.usage
    if (this.#answered || !this.#request || !answer.any || input + output > 0) return
    const { provider } = this.#who
    const lasting = { ...this.#ctx, signal: this.#services.lasting.signal }
    const source = this.#services.providers.get(provider)
    answer.usage = await countTokens(source, this.#request, answer.message(provider), lasting)
  }

  /** Releases the model and reports the end of the call. */
  async #finish(status: ModelCallEnd['status'], reason?: unknown): Promise<ModelCallEnd> {
    this.#reading?.close()
    if (status !== 'completed') await this.#settle()
    const cost = await this.#report(status)
    const answer = this.#answer
    const { provider, model } = this.#who
    const hasMessage = status === 'completed' || answer.any
    return (this.#end = {
      type: 'end',
      status,
      provider,
      model,
      ...(hasMessage ? { message: answer.message(provider) } : {}),
      ...(answer.finish === undefined ? {} : { finish: answer.finish }),
      ...(answer.stopText === undefined ? {} : { stopText: answer.stopText }),
      ...(this.#limitedBy !== undefined && answer.finish === 'length' ? { cutBy: this.#limitedBy } : {}),
      usage: sumOf(this.#spent, answer.usage),
      ...(cost === undefined ? {} : { cost }),
      tried: this.#tried,
      durationMs: performance.now() - this.#begun,
      ...(status === 'failed' ? { error: toPublicError(reason) } : {}),
    })
  }

  /** The cost of the current attempt, if its model has a price. An answer of a tap costs nothing. */
  async #attemptCost(): Promise<number | undefined> {
    const { prices, lasting } = this.#services
    if (!prices || this.#answered || !this.#request) return undefined
    return prices.cost(this.#who, this.#answer.usage, { ...this.#ctx, signal: lasting.signal })
  }

  /** Reports the end of the current attempt, and returns the cost of all attempts so far. */
  async #report(status: ModelCallEnd['status'], failure?: ModelFailure): Promise<number | undefined> {
    const call = this.#call
    this.#call = undefined
    const span = this.#span
    this.#span = undefined
    const done = call && this.#publishDone(call, status, failure)
    let cost: number | undefined
    try {
      cost = await this.#attemptCost()
    } finally {
      if (done && span?.isRecording) endSpan(span, done, this.#answer, cost)
    }
    return cost === undefined ? this.#cost : cost + (this.#cost ?? 0)
  }

  #publishDone(call: ModelCall, status: ModelCallEnd['status'], failure?: ModelFailure): ModelDone {
    const events = failure ? undefined : this.#answer.events()
    const done: ModelDone = {
      ...call,
      usage: this.#answer.usage,
      durationMs: performance.now() - this.#asked,
      firstMs: Math.max(0, this.#firstMs),
      ...(events && { events }),
      ...(this.#answered && { answered: true }),
      ...(failure && { failure }),
    }
    void this.#services.hooks.modelDone(done, this.#ctx)
    this.#publish(done, status)
    return done
  }

  #publish({ usage, durationMs, failure, ...call }: ModelDone, status: ModelCallEnd['status']): void {
    const { events } = this.#services
    const measured = { duration_ms: Math.round(durationMs), input_tokens: usage.input, output_tokens: usage.output }
    const data = { ...eventData(call), ...measured }
    if (failure) void events.publish(ModelAttemptFailed, { ...data, failure: failure.kind }, this.#ctx)
    else void events.publish(status === 'completed' ? ModelCompleted : ModelCancelled, data, this.#ctx)
  }

  #publishRecovery(call: ModelCall | undefined, recovery: FailureAnswer): void {
    if (!call) return
    const { events } = this.#services
    const data = { ...eventData(call), wait_ms: recovery.waitMs ?? 0 }
    if (!('model' in recovery) || sameModel(recovery, call.selected)) void events.publish(ModelRetried, data, this.#ctx)
    else {
      const other = { to_provider: recovery.provider, to_model: recovery.model }
      void events.publish(ModelFallback, { ...data, ...other }, this.#ctx)
    }
  }
}

const eventData = ({ turn, selected, kind, round, attempt }: ModelCall) => ({
  turn,
  provider: selected.provider,
  model: selected.model,
  kind,
  step: round,
  attempt,
})

/** Ends the span of an attempt, with the attributes of OpenTelemetry's conventions for generative AI. */
function endSpan(span: OpenSpan, done: ModelDone, answer: Answer, cost: number | undefined) {
  const { selected, request, usage, kind, failure } = done
  span.set({
    'gen_ai.operation.name': kind === 'embed' ? 'embeddings' : 'chat',
    'gen_ai.provider.name': selected.provider,
    'gen_ai.request.model': request.model,
    'gen_ai.request.max_tokens': request.maxTokens,
    'gen_ai.request.temperature': request.temperature,
    'gen_ai.response.model': selected.model,
    'gen_ai.response.finish_reasons': answer.finish === undefined ? undefined : [answer.finish],
    'gen_ai.usage.input_tokens': usage.input,
    'gen_ai.usage.output_tokens': usage.output,
    'gen_ai.usage.cache_read.input_tokens': usage.cached,
    'gen_ai.response.time_to_first_chunk': done.firstMs > 0 ? done.firstMs / 1_000 : undefined,
    'svc.cost': cost,
    'svc.model.round': done.round,
    'svc.model.attempt': done.attempt,
    'svc.turn.id': done.turn,
  })
  span.content(() => ({
    'gen_ai.input.messages': request.messages,
    ...(answer.any ? { 'gen_ai.output.messages': [answer.message(selected.provider)] } : {}),
  }))
  if (failure) span.fail(failure.kind)
  else if (!done.events) span.fail('cancelled')
  span.end()
}

/** Counts the requests to each provider, in all workers. */
export interface ProviderCounts {
  /** Counts a request of this worker. */
  readonly asked: (provider: string) => void
  readonly read: (ctx: CallContext) => Promise<ReadonlyMap<string, number>>
  /** For a tap of `Peers.hooks.metrics`: adds the counts of this worker. */
  readonly own: (metrics: WorkerMetrics) => WorkerMetrics
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (metrics: WorkerMetrics) => void
}

/** The time limits of a call. */
interface CallTimes {
  readonly firstMs: number
  readonly betweenMs: number
  readonly timeoutMs: number
  /** The end of the call as `performance.now()`. */
  readonly until: number
}

function timesOf(config: Readonly<CallsConfig>, { limits = {} }: ModelCallOrder): CallTimes {
  const timeoutMs = limits.timeoutMs ?? config.timeout_ms
  return {
    firstMs: limits.firstMs ?? config.first_token_timeout_ms,
    betweenMs: limits.betweenMs ?? config.token_timeout_ms,
    timeoutMs,
    until: performance.now() + (limits.leftMs ?? timeoutMs),
  }
}

/** Limits the output to the rest of the token budget. Throws BUDGET_EXHAUSTED if no tokens remain for an answer. */
async function fitTokenBudget(
  request: ModelRequest,
  { total, spent }: NonNullable<ModelCallOrder['budget']>,
  at: ModelCandidate,
  ctx: CallContext
): Promise<ModelRequest> {
  const needed = await tokensOf(request, at, ctx)
  const left = total - spent - needed
  if (left < 1) throw budgetExhausted(total, spent, needed)
  return { ...request, maxTokens: Math.min(left, request.maxTokens ?? at.info?.output ?? left) }
}

/** Whether the output of a request has a lower limit than before. */
const isLess = ({ maxTokens }: ModelRequest, before: ModelRequest, at: ModelCandidate) =>
  maxTokens !== undefined && maxTokens < (before.maxTokens ?? at.info?.output ?? Number.POSITIVE_INFINITY)

type SpentBudget = NonNullable<ModelCallOrder['budget']>

const withAttempts = ({ total, spent }: SpentBudget, used: number): SpentBudget => ({ total, spent: spent + used })

const MILLION = 1_000_000

/** Limits the output to the rest of the cost budget. Throws BUDGET_EXHAUSTED if it does not pay for an answer, PRICE_UNKNOWN. */
async function fitCostBudget(
  request: ModelRequest,
  { total, spent }: SpentBudget,
  at: ModelCandidate,
  prices: Prices | undefined,
  ctx: CallContext
): Promise<ModelRequest> {
  const price = await prices?.price({ provider: at.provider, model: at.model }, ctx)
  if (!price) throw priceUnknown(at.provider, at.model)
  const input = Math.max(price.input, price.cacheWrite ?? 0)
  const needed = ((await tokensOf(request, at, ctx)) * input + price.output) / MILLION
  // sums of fractions differ by their rounding
  const left = (total - spent - needed) * (1 + Number.EPSILON) + total * 1e-9
  if (left < 0) throw costExhausted(total, spent, needed)
  if (price.output === 0) return request
  const most = 1 + Math.floor((left * MILLION) / price.output)
  return { ...request, maxTokens: Math.min(most, request.maxTokens ?? at.info?.output ?? most) }
}

/** The tokens of two attempts. */
function sumOf(a: Usage, b: Usage): Usage {
  if (a.input + a.output === 0) return b
  const more = (name: 'cached' | 'cacheWrite' | 'reasoning') => {
    const sum = (a[name] ?? 0) + (b[name] ?? 0)
    return sum > 0 ? { [name]: sum } : {}
  }
  return { input: a.input + b.input, output: a.output + b.output, ...more('cached'), ...more('cacheWrite'), ...more('reasoning') }
}
