import { codeOf, messageOf, type CallContext } from '@svc/core'
import type { ModelAnswer, ModelCall, ModelDone, ModelEvent, ModelFailure, ModelRef, ModelRequest } from '@svc/core/contracts'
import { Answer, ModelReading, readReady } from './model-call.ts'
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
import { type Candidate, type ChatServices, requestOf, spend, type Turn } from './turn.ts'

type Next = ModelEvent | undefined
type Reading = Pick<ModelReading, 'next' | 'close' | 'stalled'>

/** So often a round asks, and so often taps may send it on before it asks: a plugin that never gives up is no reason to go on. */
const TRIES = 100
const MOVES = 16
const NONE: readonly ModelRef[] = []
/** Codes of what is the caller's own. */
const CALLERS: ReadonlySet<string> = new Set(['INVALID_VALUE', 'BUDGET_EXHAUSTED'])

/** One round of a turn: the model is asked, tried again or elsewhere if a plugin says so, and its events are read one by one. */
export class ModelStep {
  answer: Answer
  /** What the model was asked; absent before it was. */
  request: ModelRequest | undefined
  readonly #services: ChatServices
  readonly #turn: Turn
  readonly #number: number
  readonly #withTools: boolean
  readonly #ctx: CallContext
  #reading: Reading | undefined
  /** The call that is under way: what fails while it is there is the model's failure. */
  #call: ModelCall | undefined
  #answered = false
  /** The models that failed in this round. */
  readonly #failed: ModelRef[] = []
  #asked = 0
  #firstMs = -1
  #resolve!: (event: Next) => void
  #reject!: (error: unknown) => void

  /** Begins a round; nothing is asked before the first `next`. */
  constructor(services: ChatServices, turn: Turn, number: number, withTools: boolean, ctx: CallContext) {
    this.#services = services
    this.#turn = turn
    this.#number = number
    this.#withTools = withTools
    this.#ctx = ctx
    this.answer = this.#unsaid()
  }

  /** The next event; `undefined` at the end. Throws MODEL_FAILED. */
  next(): Promise<Next> {
    return new Promise(this.#wait)
  }

  /** Lets go of the model: its call is aborted if it has not ended. */
  leave(): void {
    this.#reading?.close()
  }

  /** Lets go of the model, and tells what its call has cost. */
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

  // One promise an event and no more: the steps below are made once a round, not once a token.
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
    this.#fix(error).then(() => this.#read(), this.#reject)
  }

  async #begin(): Promise<Reading> {
    this.#asked = performance.now()
    this.#firstMs = -1
    for (let moves = 0; ; moves++) {
      // a tap that breaks is no failure of the model: so there is no call while they are asked
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

  /** How the call is answered; `undefined` where the turn goes on with another model. */
  #take(answer: ModelAnswer | undefined, at: Candidate, request: ModelRequest): Reading | undefined {
    this.#answered = answer !== undefined && !('model' in answer)
    if (!answer || ('model' in answer && sameModel(answer, at))) return this.#ask(at, request)
    if ('events' in answer) return readReady(answer.events)
    if ('failure' in answer) throw modelFailed(at.provider, answer.failure, answer.message)
    this.#turn.who = { provider: answer.provider, model: answer.model }
    return undefined
  }

  #ask({ source, provider }: Candidate, request: ModelRequest): ModelReading {
    const { config, counts, clock } = this.#services
    counts.asked(provider)
    const limits = {
      firstMs: request.gathered ? config.whole_timeout_ms : config.first_token_timeout_ms,
      betweenMs: config.token_timeout_ms,
      until: this.#turn.until,
      turnMs: this.#turn.limitMs,
    }
    return new ModelReading(source, provider, request, limits, clock, this.#ctx)
  }

  /** Works out whom to ask for what. */
  async #plan(): Promise<{ at: Candidate; call: ModelCall }> {
    const turn = this.#turn
    let request = requestOf(this.#services, turn, this.#withTools)
    let at: Candidate | undefined
    try {
      at = await candidateOf(this.#services, turn, this.#ctx)
      request = adaptToModel(request, at, turn)
      request = await fitContextWindow(request, turn.open.turns, at, this.#ctx)
      if (turn.asked.tokenBudget !== undefined)
        request = await fitTokenBudget(request, turn.asked.tokenBudget, turn, at, this.#ctx)
      return { at, call: this.#callOf(request) }
    } catch (error) {
      // a request that the model cannot serve is not a failure of the model
      if (!at || !CALLERS.has(codeOf(error) ?? '')) this.#call = this.#callOf(request)
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
      attempt: this.#failed.length === 0 ? 1 : 1 + this.#failed.filter(one => sameModel(one, who)).length,
      tried: tried.length === 0 ? NONE : [...tried],
    }
  }

  /** What a failed call means: another try (then it returns), or the end of the turn. */
  async #fix(error: unknown): Promise<void> {
    const isStalled = this.#reading?.stalled === true
    this.#reading?.close()
    this.#reading = undefined
    if (this.#ctx.signal.aborted) throw this.#ctx.signal.reason
    if (!this.#call) throw error
    const { who, until, tried } = this.#turn
    const failure = await this.#measured({ ...failureOf(error), ...(isStalled && { requestOnly: true }) })
    const message = this.#wordsOf(error)
    const recovery = this.answer.any
      ? undefined
      : await this.#services.hooks.modelFailed({ ...this.#call, failure, message }, this.#ctx)
    await this.settle()
    this.#done(failure)
    this.#failed.push(who)
    const waitMs = recovery?.waitMs ?? 0
    if (!recovery || this.#failed.length >= TRIES || performance.now() + waitMs >= until)
      throw modelFailed(who.provider, failure, message, error)
    // a try that failed after all may have said that it had finished, and what it had cost
    spend(this.#turn, this.answer)
    this.answer = this.#unsaid()
    if (waitMs > 0) await pause(waitMs, this.#ctx.signal)
    if (!('model' in recovery)) return
    if (!sameModel(recovery, who)) tried.push(who)
    this.#turn.who = { provider: recovery.provider, model: recovery.model }
  }

  #unsaid(): Answer {
    const { answer_limit: limit, tool_arguments_limit: argumentsLimit } = this.#services.config
    return new Answer(limit, argumentsLimit)
  }

  /** An upstream that finds a context too long often does not say by how much. */
  async #measured(failure: ModelFailure): Promise<ModelFailure> {
    const { known } = this.#turn
    if (failure.kind !== 'context_too_long' || failure.count !== undefined || !known || !this.#call) return failure
    const count = await tokensOf(this.#call.request, known, this.#ctx)
    return { limit: known.info?.context ?? count, ...failure, count }
  }

  /** A provider's own words only where it kept its contract: what else it throws may hold anything. */
  #wordsOf(error: unknown): string {
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

/** Waits. Throws what `signal` aborted with. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onAbort = () => reject(signal.reason)
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', onAbort, { once: true })
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  })
}

/** The request with no more output than what is left of the turn's tokens. Throws BUDGET_EXHAUSTED where nothing would be left for an answer. */
async function fitTokenBudget(
  request: ModelRequest,
  budget: number,
  { usage }: Turn,
  at: Candidate,
  ctx: CallContext
): Promise<ModelRequest> {
  const spent = usage.input + usage.output
  const needed = await tokensOf(request, at, ctx)
  const left = budget - spent - needed
  if (left < 1) throw budgetExhausted(budget, spent, needed)
  return { ...request, maxTokens: Math.min(left, request.maxTokens ?? at.info?.output ?? left) }
}
