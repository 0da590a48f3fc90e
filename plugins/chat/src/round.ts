import { codeOf, messageOf, type Use, within } from '@svc/core'
import type { ModelCall, ModelEvent, ModelFailure, ModelInfo, ModelRequest, Provider } from '@svc/core/contracts'
import { Answer } from './answer.ts'
import { failureOf, invalid, modelBroke, modelFailed, modelsLate } from './errors.ts'
import { fitHistory } from './messages.ts'
import { ModelReading, readReady } from './model-call.ts'
import type { ChatRoom } from './parts.ts'
import { requestOf, type Turn } from './turn.ts'

type Next = ModelEvent | undefined

/** One round of a turn: the model is asked, tried again or elsewhere if a plugin says so, and its events are read one by one. */
export class Round {
  readonly answer = new Answer()
  /** What the model was asked; absent before it was. */
  request: ModelRequest | undefined
  readonly #room: ChatRoom
  readonly #turn: Turn
  readonly #number: number
  readonly #withTools: boolean
  readonly #use: Use
  #reading: Pick<ModelReading, 'next' | 'close'> | undefined
  /** The call that is under way: what fails while it is there is the model's failure. */
  #call: ModelCall | undefined
  #attempt = 1
  #asked = 0
  #firstMs = -1
  #resolve!: (event: Next) => void
  #reject!: (error: unknown) => void

  /** Begins a round; nothing is asked before the first `next`. */
  constructor(room: ChatRoom, turn: Turn, number: number, withTools: boolean, use: Use) {
    this.#room = room
    this.#turn = turn
    this.#number = number
    this.#withTools = withTools
    this.#use = use
  }

  /** The next event; `undefined` at the end. Throws MODEL_FAILED. */
  next(): Promise<Next> {
    return new Promise(this.#wait)
  }

  /** Lets go of the model: its call is aborted if it has not ended. */
  close(): void {
    this.#reading?.close()
    this.#done()
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
    if (!step.done) return this.#resolve(step.value)
    if (this.answer.finish === undefined)
      return this.#onFail(modelBroke(this.#turn.who.provider, 'ended its answer without a finish'))
    this.close()
    this.#resolve(undefined)
  }

  readonly #onFail = (error: unknown) => {
    this.#mend(error).then(() => this.#read(), this.#reject)
  }

  async #begin(): Promise<Pick<ModelReading, 'next' | 'close'>> {
    const at = await target(this.#room, this.#turn, this.#use)
    const planned = await this.#plan(at)
    const ready = await this.#room.hooks.modelCall(planned, this.#use)
    this.#call = planned
    this.request = planned.request
    this.#asked = performance.now()
    return ready ? readReady(ready) : this.#ask(at, planned.request)
  }

  #ask({ provider, name }: Target, request: ModelRequest): ModelReading {
    const { config, counts, clock } = this.#room
    counts.asked(name)
    const limits = {
      firstMs: config.first_token_timeout_ms,
      betweenMs: config.token_timeout_ms,
      until: this.#turn.until,
      turnMs: config.timeout_ms,
    }
    return new ModelReading(provider, name, request, limits, clock, this.#use)
  }

  async #plan(at: Target): Promise<ModelCall> {
    const turn = this.#turn
    const request = await fitHistory(requestOf(this.#room, turn, this.#withTools), turn.open.turns, at, this.#use)
    checkLimits(request, at.info, turn.asked.maxTokens !== undefined)
    return { selected: { ...turn.selected, ...turn.who }, request, round: this.#number, attempt: this.#attempt }
  }

  /** What a failed call means: another try (then it returns), or the end of the turn. */
  async #mend(error: unknown): Promise<void> {
    this.#reading?.close()
    this.#reading = undefined
    if (this.#use.signal.aborted) throw this.#use.signal.reason
    if (!this.#call) throw error
    const { provider } = this.#turn.who
    const failure = failureOf(error)
    const message = this.#wordsOf(error)
    const mend = this.answer.any ? undefined : await this.#room.hooks.modelFailed({ ...this.#call, failure, message }, this.#use)
    this.#done(failure)
    const waitMs = mend?.waitMs ?? 0
    if (!mend || performance.now() + waitMs >= this.#turn.until) throw modelFailed(provider, failure, message, error)
    if (waitMs > 0) await pause(waitMs, this.#use.signal)
    if ('provider' in mend) this.#turn.who = { provider: mend.provider, model: mend.model }
    this.#attempt++
  }

  /** A provider's own words only where it kept its contract: what else it throws may hold anything. */
  #wordsOf(error: unknown): string {
    if (codeOf(error) === 'MODEL_FAILED') return messageOf(error)
    const { provider } = this.#turn.who
    this.#room.log.error({ err: error, provider, request_id: this.#use.requestId }, 'a provider broke its contract')
    return `provider "${provider}" failed`
  }

  #done(failure?: ModelFailure) {
    if (!this.#call) return
    const times = { durationMs: performance.now() - this.#asked, firstMs: Math.max(0, this.#firstMs) }
    const told = { ...this.#call, usage: this.answer.usage, ...times, ...(failure ? { failure } : {}) }
    this.#call = undefined
    void this.#room.hooks.modelDone(told, this.#use)
  }
}

interface Target {
  readonly provider: Provider
  readonly name: string
  readonly info: ModelInfo | undefined
}

async function target(room: ChatRoom, turn: Turn, use: Use): Promise<Target> {
  const { provider: name, model } = turn.who
  const provider = room.providers.get(name)
  // it was there when it was selected: plugins come and go
  if (!provider) throw modelBroke(name, 'has left')
  const ms = Math.min(room.config.first_token_timeout_ms, Math.max(0, turn.until - performance.now()))
  const late = () => modelsLate(name, Math.round(ms))
  const { models } = await within(ms, signal => provider.models({ ...use, signal }), { signal: use.signal, late })
  return { provider, name, info: models.find(one => one.id === model) }
}

function checkLimits({ maxTokens }: ModelRequest, info: ModelInfo | undefined, asked: boolean) {
  if (!asked || maxTokens === undefined || info?.output === undefined || maxTokens <= info.output) return
  throw invalid('max_tokens', `must be at most ${info.output} for the model ${info.id}`, { value: maxTokens, limit: info.output })
}

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
