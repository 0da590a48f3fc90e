import { svcError, type CallContext } from '@svc/core'
import type { Chat, ModelEvent, ToolCallPart, TurnEnd, TurnEvent, TurnReply, TurnRequest, TurnStatus } from '@svc/core/contracts'
import { createClock } from './model-call.ts'
import { toPublicError } from './errors.ts'
import {
  beginTurn,
  type ChatDependencies,
  type ChatServices,
  endEvent,
  isFit,
  keepTurn,
  leaveTurn,
  spend,
  startEvent,
  type Turn,
  type TurnHow,
} from './turn.ts'
import { ModelStep } from './model-step.ts'
import { createToolLists } from './tool-list.ts'
import { mayUseTools, runTools } from './tools.ts'

/** Runs turns. `reply` collects the same events that `stream` yields. */
export function createChat(parts: ChatDependencies): Chat {
  const services: ChatServices = {
    ...parts,
    toolsFor: createToolLists(parts.tools, parts.modes, parts.config.tools_inline),
    clock: createClock(),
  }
  return {
    stream: (request, ctx) => runTurn(services, request, { isShown: true, key: ctx.idempotencyKey }, withoutKey(ctx)),
    reply: (request, ctx) => gather(runTurn(services, request, { isShown: false, key: ctx.idempotencyKey }, withoutKey(ctx))),
    answer: (answer, ctx) => services.questions.answer(answer, ctx),
  }
}

/** Removes the caller's idempotency key. Tool calls get keys of their own; other calls of a turn need none. */
function withoutKey(ctx: CallContext): CallContext {
  if (ctx.idempotencyKey === undefined) return ctx
  const { idempotencyKey: _key, ...rest } = ctx
  return rest
}

/** `isShown`: the turn is streamed. Tokens go to the reader directly, without a second generator. */
async function* runTurn(
  services: ChatServices,
  request: TurnRequest,
  how: TurnHow,
  ctx: CallContext
): AsyncGenerator<TurnEvent, TurnReply> {
  const { isShown } = how
  const turn = await beginTurn(services, request, how, ctx)
  const run = new TurnRun(services, turn, isShown, ctx)
  try {
    for (;;) {
      const step = run.beginStep()
      for (;;) {
        const pending = step.next()
        if (run.isStartDue && (await isSlow(pending, services.config.start_after_ms))) yield run.start()
        const event = await pending
        if (run.isStartDue) yield run.start()
        if (!event) break
        const token = run.take(step, event)
        if (token) yield token
      }
      const calls = run.endStep(step)
      if (calls.length > 0) yield* runTools(services, turn, calls, isShown, ctx)
      else if (isAnswered(turn)) break
    }
    if (isShown && turn.form) yield { type: 'token', content: turn.said, index: 0 }
    const end = await run.complete()
    if (isShown) yield end
    return replyOf(turn, end)
  } catch (error) {
    const { end, events } = await run.fail(error)
    for (const event of events) yield event
    return replyOf(turn, end)
  } finally {
    await run.leave()
  }
}

const isAnswered = (turn: Turn) => !turn.form || isFit(turn, turn.form)

/** The progress of a turn: its start event, its model steps and its single end event. */
class TurnRun {
  readonly #services: ChatServices
  readonly #turn: Turn
  readonly #isShown: boolean
  readonly #ctx: CallContext
  #started = false
  #number = 0
  #withTools = true
  #step: ModelStep | undefined
  #status: TurnStatus = 'cancelled'
  #end: TurnEnd | undefined

  constructor(services: ChatServices, turn: Turn, isShown: boolean, ctx: CallContext) {
    this.#services = services
    this.#turn = turn
    this.#isShown = isShown
    this.#ctx = ctx
  }

  /** Whether the reader still waits for the start event. */
  get isStartDue(): boolean {
    return this.#isShown && !this.#started
  }

  start(): TurnEvent {
    this.#started = true
    return startEvent(this.#turn, this.#ctx)
  }

  beginStep(): ModelStep {
    this.#number += 1
    this.#withTools = mayUseTools(this.#services, this.#turn, this.#number)
    this.#step = new ModelStep(this.#services, this.#turn, this.#number, this.#withTools, this.#ctx)
    return this.#step
  }

  /** Adds an event of the model to the answer. Returns the event for the reader, if any. */
  take({ answer }: ModelStep, event: ModelEvent): TurnEvent | undefined {
    this.#started = true
    const text = answer.take(event)
    if (text === undefined) return undefined
    this.#turn.said += text
    return this.#isShown && !this.#turn.form ? { type: 'token', content: text, index: this.#turn.tokens++ } : undefined
  }

  /** Closes the model step; returns the tools that it calls. */
  endStep({ answer }: ModelStep): readonly ToolCallPart[] {
    this.#started = true
    // no further step could use their results
    if (!this.#withTools) answer.dropCalls()
    closeAnswer(this.#turn, answer)
    this.#step = undefined
    return answer.calls
  }

  async complete(): Promise<TurnEnd> {
    await keepTurn(this.#services, this.#turn, 'completed', this.#ctx)
    return (this.#end = endEvent(this.#turn, 'completed', this.#ctx))
  }

  /** Ends the turn after an error. Returns the last events for the reader. Throws if the turn has not started. */
  async fail(error: unknown): Promise<{ readonly end: TurnEnd; readonly events: readonly TurnEvent[] }> {
    if (!this.#ctx.signal.aborted) this.#status = 'failed'
    if (!this.#started) throw error
    const end = (this.#end = await this.#endIncomplete())
    // an error after an abort is the effect of that abort
    if (this.#status !== 'failed') return { end, events: this.#isShown ? [end] : [] }
    const failure = toPublicError(error)
    if (failure.code === 'INTERNAL_ERROR')
      this.#services.log.error({ err: error, request_id: this.#ctx.requestId }, 'a turn failed')
    if (!this.#isShown) throw svcError(failure.code, failure.message, { details: { ...failure.details } })
    return { end, events: [{ type: 'error', error: failure }, end] }
  }

  /** Releases the model and the conversation, whatever the status of the turn. */
  async leave(): Promise<void> {
    this.#step?.leave()
    const end = (this.#end ??= await this.#endIncomplete())
    await leaveTurn(this.#services, this.#turn)
    const { id, kept, made } = this.#turn
    void this.#services.hooks.end({ turn: id, end, kept: kept ? made : [] }, this.#ctx)
  }

  /** Keeps the partial reply of a turn that did not complete. */
  async #endIncomplete(): Promise<TurnEnd> {
    const closed = this.#step && closeIncomplete(this.#turn, this.#step)
    try {
      await keepTurn(this.#services, this.#turn, this.#status, this.#ctx)
    } catch (error) {
      const facts = { err: error, request_id: this.#ctx.requestId }
      this.#services.log.error(facts, 'failed to keep the partial reply of a turn')
    }
    await closed
    return endEvent(this.#turn, this.#status, this.#ctx)
  }
}

function closeAnswer(turn: Turn, answer: ModelStep['answer']): void {
  spend(turn, answer)
  turn.made.push(answer.message(turn.who.provider))
}

/** Closes a step that its provider did not end. The turn and the metrics count the same tokens. */
async function closeIncomplete(turn: Turn, step: ModelStep): Promise<void> {
  const { answer } = step
  if (answer.any) turn.made.push(answer.message(turn.who.provider))
  await step.settle()
  spend(turn, answer)
  step.close()
}

/** Whether the first event takes longer than `afterMs`. */
async function isSlow(pending: Promise<unknown>, afterMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(resolve, afterMs, true)
  pending.then(
    () => resolve(false),
    () => resolve(false)
  )
  return promise.finally(() => clearTimeout(timer))
}

/** Runs a turn to its end and returns its reply. */
async function gather(events: AsyncGenerator<TurnEvent, TurnReply>): Promise<TurnReply> {
  for (let step = await events.next(); ; step = await events.next()) if (step.done) return step.value
}

function replyOf({ said }: Turn, { type: _type, ...end }: TurnEnd): TurnReply {
  return { response: said, ...end }
}
