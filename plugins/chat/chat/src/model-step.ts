import { codeOf, messageOf, pause, type CallContext } from '@svc/core'
import type { ModelAnswer, ModelCall, ModelDone, ModelEvent, ModelFailure, ModelRef, ModelRequest } from '@svc/core/contracts'
import { ModelReply, ModelReading, readReady } from './model-call.ts'
import {
  adaptToModel,
  candidateOf,
  countTokens,
  fitContextWindow,
  sameModel,
  tokensOf,
  tooManySwitches,
} from './context-window.ts'
import { answerTooLong, budgetExhausted, failureOf, modelBroke, modelFailed } from './errors.ts'
import { type ModelCandidate, type ChatServices, requestOf, spend, type Turn } from './turn.ts'

type Next = ModelEvent | undefined
type Reading = Pick<ModelReading, 'next' | 'close' | 'stalled'>

/** Maximum calls of a model step, against a plugin that always retries. */
const TRIES = 100
/** Maximum switches to another model before a call. */
const MOVES = 16
const NONE: readonly ModelRef[] = []
/** Codes of errors in the caller's request. */
const CALLER_ERRORS: ReadonlySet<string> = new Set(['INVALID_VALUE', 'BUDGET_EXHAUSTED'])

/** One model step of a turn: calls the model and reads its events. Plugins decide about retries and other models. */
export class ModelStep {
  answer: ModelReply
  /** The request of the current call; absent before the first call. */
  request: ModelRequest | undefined
  readonly #services: ChatServices
  readonly #turn: Turn
  readonly #number: number
  readonly #withTools: boolean
  readonly #ctx: CallContext
  #reading: Reading | undefined
  /** The running call. An error while it is set is a failure of the model. */
  #call: ModelCall | undefined
  #answered = false
  /** The models that failed in this step. */
  readonly #failed: ModelRef[] = []
  #asked = 0
  #firstMs = -1
  #resolve!: (event: Next) => void
  #reject!: (error: unknown) => void

  /** The first `next` calls the model. */
  constructor(services: ChatServices, turn: Turn, number: number, withTools: boolean, ctx: CallContext) {
    this.#services = services
    this.#turn = turn
    this.#number = number
    this.#withTools = withTools
    this.#ctx = ctx
    this.answer = this.#newAnswer()
  }

  /** The next event; `undefined` at the end. Throws MODEL_FAILED. */
  next(): Promise<Next> {
    return new Promise(this.#wait)
  }

  /** Releases the model and aborts a call that has not ended. */
  leave(): void {
    this.#reading?.close()
  }

  /** Releases the model and reports the end of its call. */
  close(): void {
    this.leave()
    this.#done()
  }

  /** Counts the tokens of a call that produced output and ended before its provider reported usage. */
  async settle(): Promise<void> {
    const { answer, request } = this
    const { input, output } = answer.usage
    if (this.#answered || !request || !answer.any || input + output > 0) return
    const { provider } = this.#turn.who
    const lasting = { ...this.#ctx, signal: this.#services.lasting.signal }
    answer.usage = await countTokens(this.#services.providers.get(provider), request, answer.message(provider), lasting)
  }

  // One promise for each event. The handlers below are created once for each step, not for each token.
  readonly #wait = (resolve: (event: Next) => void, reject: (error: unknown) => void) => {
    this.#resolve = resolve
    this.#reject = reject
    this.#read()
  }

  #read() {
    if (this.#reading) return this.#reading.next(this.#onStep, this.#onFail)
    this.#begin().then(reading => {
      this.#reading = reading
      reading.next(this.#onStep, this.#onFail)
    }, this.#onFail)
  }

  readonly #onStep = (step: IteratorResult<ModelEvent>) => {
    if (this.#firstMs < 0) this.#firstMs = performance.now() - this.#asked
    if (!step.done) {
      if (this.answer.grows(step.value)) return this.#resolve(step.value)
      return this.#onFail(answerTooLong(this.#turn.who.provider, this.#services.config.answer_limit))
    }
    if (this.answer.finish === undefined)
      return this.#onFail(modelBroke(this.#turn.who.provider, 'ended its answer without a finish'))
    this.close()
    this.#resolve(undefined)
  }

  readonly #onFail = (error: unknown) => {
    this.#recover(error).then(() => this.#read(), this.#reject)
  }

  async #begin(): Promise<Reading> {
    this.#asked = performance.now()
    this.#firstMs = -1
    for (let moves = 0; ; moves++) {
      // an error of a tap is not a failure of the model, so `#call` is unset while the taps run
      const { at, call } = await this.#plan()
      const answer = await this.#services.hooks.modelCall(call, this.#ctx)
      this.#call = call
      this.request = call.request
      const reading = this.#take(answer, at, call.request)
      if (reading) return reading
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
    this.#turn.who = { provider: answer.provider, model: answer.model }
    return undefined
  }

  #ask({ source, provider }: ModelCandidate, request: ModelRequest): ModelReading {
    const { config, counts, clock } = this.#services
    counts.asked(provider)
    const limits = {
      firstMs: (request.gathered ? config.whole_timeout_ms : undefined) ?? config.first_token_timeout_ms,
      betweenMs: config.token_timeout_ms,
      until: this.#turn.until,
      turnMs: this.#turn.limitMs,
    }
    return new ModelReading(source, provider, request, limits, clock, this.#ctx)
  }

  /** Resolves the model and builds its request. */
  async #plan(): Promise<{ at: ModelCandidate; call: ModelCall }> {
    const turn = this.#turn
    let request = requestOf(this.#services, turn, this.#withTools)
    let at: ModelCandidate | undefined
    try {
      at = await candidateOf(this.#services, turn, this.#ctx)
      request = adaptToModel(request, at, turn)
      request = await fitContextWindow(request, turn.open.turns, at, this.#ctx)
      if (turn.asked.tokenBudget !== undefined)
        request = await fitTokenBudget(request, turn.asked.tokenBudget, turn, at, this.#ctx)
      return { at, call: this.#callOf(request) }
    } catch (error) {
      // a request that the model cannot serve is not a failure of the model
      if (!at || !CALLER_ERRORS.has(codeOf(error) ?? '')) this.#call = this.#callOf(request)
      throw error
    }
  }

  #callOf(request: ModelRequest): ModelCall {
    const { selected, who, tried } = this.#turn
    const isSelected = sameModel(selected, who)
    return {
      turn: this.#turn.id,
      selected: isSelected ? selected : { ...selected, ...who },
      request,
      round: this.#number,
      attempt: this.#failed.length === 0 ? 1 : 1 + this.#failed.filter(item => sameModel(item, who)).length,
      tried: tried.length === 0 ? NONE : [...tried],
    }
  }

  /** Handles a failed call. Returns if the step tries again; throws if the turn ends. */
  async #recover(error: unknown): Promise<void> {
    const isStalled = this.#reading?.stalled === true
    this.#reading?.close()
    this.#reading = undefined
    if (this.#ctx.signal.aborted) throw this.#ctx.signal.reason
    if (!this.#call) throw error
    const { who, until, tried } = this.#turn
    const failure = await this.#measured({ ...failureOf(error), ...(isStalled && { requestOnly: true }) })
    const message = this.#messageOf(error)
    const recovery = this.answer.any
      ? undefined
      : await this.#services.hooks.modelFailed({ ...this.#call, failure, message }, this.#ctx)
    await this.settle()
    this.#done(failure)
    this.#failed.push(who)
    const waitMs = recovery?.waitMs ?? 0
    if (!recovery || this.#failed.length >= TRIES || performance.now() + waitMs >= until)
      throw modelFailed(who.provider, failure, message, error)
    // a call that failed after its finish event has already reported usage
    spend(this.#turn, this.answer)
    this.answer = this.#newAnswer()
    if (waitMs > 0) await pause(waitMs, this.#ctx.signal)
    if (!('model' in recovery)) return
    if (!sameModel(recovery, who)) tried.push(who)
    this.#turn.who = { provider: recovery.provider, model: recovery.model }
  }

  #newAnswer(): ModelReply {
    const { answer_limit: limit, tool_arguments_limit: argumentsLimit } = this.#services.config
    return new ModelReply(limit, argumentsLimit)
  }

  /** Adds the token count to `context_too_long`, because an upstream often omits it. */
  async #measured(failure: ModelFailure): Promise<ModelFailure> {
    const { known } = this.#turn
    if (failure.kind !== 'context_too_long' || failure.count !== undefined || !known || !this.#call) return failure
    const count = await tokensOf(this.#call.request, known, this.#ctx)
    return { limit: known.info?.context ?? count, ...failure, count }
  }

  /** Passes on only messages of MODEL_FAILED. Another error of a provider can contain secrets. */
  #messageOf(error: unknown): string {
    if (codeOf(error) === 'MODEL_FAILED') return messageOf(error)
    const { provider } = this.#turn.who
    this.#services.log.error({ err: error, provider, request_id: this.#ctx.requestId }, 'a provider broke its contract')
    return `provider "${provider}" failed`
  }

  #done(failure?: ModelFailure) {
    const call = this.#call
    if (!call) return
    this.#call = undefined
    const events = failure ? undefined : this.answer.events()
    const done: ModelDone = {
      ...call,
      usage: this.answer.usage,
      durationMs: performance.now() - this.#asked,
      firstMs: Math.max(0, this.#firstMs),
      ...(events && { events }),
      ...(this.#answered && { answered: true }),
      ...(failure && { failure }),
    }
    void this.#services.hooks.modelDone(done, this.#ctx)
  }
}

/** Limits the output to the rest of the turn's token budget. Throws BUDGET_EXHAUSTED if no tokens remain for an answer. */
async function fitTokenBudget(
  request: ModelRequest,
  budget: number,
  { usage }: Turn,
  at: ModelCandidate,
  ctx: CallContext
): Promise<ModelRequest> {
  const spent = usage.input + usage.output
  const needed = await tokensOf(request, at, ctx)
  const left = budget - spent - needed
  if (left < 1) throw budgetExhausted(budget, spent, needed)
  return { ...request, maxTokens: Math.min(left, request.maxTokens ?? at.info?.output ?? left) }
}
