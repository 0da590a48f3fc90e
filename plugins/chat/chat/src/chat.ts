import { codeOf, messageOf, type SvcError, svcError, type CallContext, type OpenSpan } from '@svc/core'
import {
  type Chat,
  type ModelCallEnd,
  type ModelCallEvent,
  type StoredMessage,
  type ToolCallPart,
  TurnCancelled,
  TurnCompleted,
  type TurnEnd,
  type TurnEvent,
  TurnFailed,
  type TurnReply,
  type TurnRequest,
  TurnStarted,
  type TurnStatus,
} from '@svc/core/contracts'
import { toPublicError } from './errors.ts'
import {
  beginTurn,
  type ChatDependencies,
  type ChatServices,
  endEvent,
  isFit,
  keepTurn,
  leaveTurn,
  startEvent,
  type Turn,
} from './turn.ts'
import { ModelStep } from './model-step.ts'
import { callsIn, type PreparedTurn, prepareTurn, type RestoreOptions, restoreTurn, type SavedTurn } from './saved-turn.ts'
import { createToolLists } from './tool-list.ts'
import { callTool } from './tool-call.ts'
import { mayUseTools, runTools } from './tools.ts'
import type { TurnJournal } from './waiting-turns.ts'

/** Runs turns. */
export interface TurnRunner extends Pick<Chat, 'stream' | 'reply' | 'callTool'> {
  /** A turn with a stream in `TurnStreams`. */
  begin(request: TurnRequest, journal: TurnJournal, ctx: CallContext): AsyncIterable<TurnEvent>
  /** Prepares a turn whose worker exited. Throws the errors of a turn that cannot begin. */
  prepare(saved: SavedTurn, ctx: CallContext): Promise<PreparedTurn>
  /** Runs it from the calls of its last step on. */
  resume(prepared: PreparedTurn, options: RestoreOptions, ctx: CallContext): AsyncIterable<TurnEvent>
}

/** Runs turns. `reply` collects the same events that `stream` yields. */
export function createTurnRunner(parts: ChatDependencies): TurnRunner {
  const services: ChatServices = {
    ...parts,
    toolsFor: createToolLists(parts.tools, parts.modes, parts.config.tools_inline),
  }
  const run = (request: TurnRequest, isShown: boolean, journal: TurnJournal | undefined, ctx: CallContext) => {
    const how = { isShown, key: ctx.idempotencyKey, journal }
    return runTurn(services, turnContext => beginTurn(services, request, how, turnContext), isShown, withoutKey(ctx))
  }
  return {
    stream: (request, ctx) => run(request, true, undefined, ctx),
    reply: (request, ctx) => gather(run(request, false, undefined, ctx)),
    callTool: (request, ctx) => callTool(services, request, ctx),
    begin: (request, journal, ctx) => run(request, true, journal, ctx),
    prepare: (saved, ctx) => prepareTurn(services, saved, ctx),
    resume: (prepared, options, ctx) =>
      runTurn(services, turnContext => restoreTurn(services, prepared, options, turnContext), true, withoutKey(ctx)),
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
  open: (ctx: CallContext) => Promise<Turn>,
  isShown: boolean,
  ctx: CallContext
): AsyncGenerator<TurnEvent, TurnReply> {
  const span = services.span('invoke_agent', ctx)
  const turn = await open(span.ctx).catch((error: unknown) => {
    span.fail(error)
    span.end()
    throw error
  })
  const run = new TurnRun(services, turn, isShown, span)
  try {
    yield* runInterrupted(services, turn, span.ctx)
    for (;;) {
      const step = run.beginStep()
      for (;;) {
        const pending = step.next()
        if (run.isStartDue && (await isSlow(pending, run.leftToStart()))) yield run.start()
        const { done, value: event } = await pending
        if (done) break
        if (run.begins(event)) yield run.start()
        const token = run.take(event)
        if (token) yield token
      }
      const calls = run.endStep()
      if (run.isSpent(calls)) break
      if (calls.length > 0) yield* runTools(services, turn, calls, isShown, span.ctx)
      if (isAnswered(turn, calls)) break
    }
    return replyOf(turn, yield* runEnd(run, turn, isShown))
  } catch (error) {
    const { end, events } = run.stopsAt(error)
      ? await run.stopped().catch((thrown: unknown) => run.fail(thrown))
      : await run.fail(error)
    for (const event of events) yield event
    return replyOf(turn, end)
  } finally {
    await run.leave()
  }
}

/** Runs the calls of the step in which the turn was interrupted. */
async function* runInterrupted(services: ChatServices, turn: Turn, ctx: CallContext): AsyncGenerator<TurnEvent, void> {
  if (turn.interrupted) yield* runTools(services, turn, callsIn(turn.made.at(-1)!), true, ctx)
}

/** Completes the turn. A form is shown only when it is complete. */
async function* runEnd(run: TurnRun, turn: Turn, isShown: boolean): AsyncGenerator<TurnEvent, TurnEnd> {
  if (isShown && turn.form) yield { type: 'token', content: turn.said, index: 0 }
  const end = await run.complete()
  if (isShown) yield end
  return end
}

/** Whether the turn ends after a step that made these calls of its own tools. */
const isAnswered = (turn: Turn, calls: readonly ToolCallPart[]) =>
  turn.clientCalls.length > 0 || (calls.length === 0 && (!turn.form || isFit(turn, turn.form)))

/** The progress of a turn: its start event, its model steps and its single end event. */
class TurnRun {
  readonly #services: ChatServices
  readonly #turn: Turn
  readonly #isShown: boolean
  readonly #ctx: CallContext
  readonly #span: OpenSpan
  /** Aborts the model, when the caller aborts or the reader leaves. */
  readonly #stop = new AbortController()
  readonly #begun = performance.now()
  #started = false
  #number = 0
  #withTools = true
  #step: ModelStep | undefined
  #stepEnd: ModelCallEnd | undefined
  #status: TurnStatus = 'cancelled'
  #end: TurnEnd | undefined
  /** Why the turn failed. */
  #failure: unknown

  constructor(services: ChatServices, turn: Turn, isShown: boolean, span: OpenSpan) {
    const { ctx } = span
    this.#services = services
    this.#turn = turn
    this.#isShown = isShown
    this.#ctx = ctx
    this.#span = span
    // the events of an interrupted turn begin with its start
    this.#started = turn.interrupted !== undefined
    this.#number = turn.steps.length
    if (span.isRecording) span.set(attributesOf(turn))
    ctx.signal.addEventListener('abort', this.#onAbort, { once: true })
    if (ctx.signal.aborted) this.#onAbort()
    void services.events.publish(TurnStarted, eventData(turn), ctx)
  }

  readonly #onAbort = () => this.#stop.abort(this.#ctx.signal.reason)

  /** Whether the reader still waits for the start event. */
  get isStartDue(): boolean {
    return this.#isShown && !this.#started
  }

  /** Whether the start event comes before this event of the model: it is of an answer, or the end of one that is complete. */
  begins(event: ModelCallEvent): boolean {
    return this.isStartDue && event.type !== 'start' && (event.type !== 'end' || event.status === 'completed')
  }

  /** Milliseconds until the start event is sent without waiting for the model. */
  leftToStart(): number {
    return Math.max(0, this.#begun + this.#services.config.start_after_ms - performance.now())
  }

  start(): TurnEvent {
    this.#started = true
    return startEvent(this.#turn, this.#ctx)
  }

  beginStep(): ModelStep {
    this.#number += 1
    this.#withTools = mayUseTools(this.#services, this.#turn, this.#number)
    const ctx = { ...this.#ctx, signal: this.#stop.signal }
    this.#stepEnd = undefined
    return (this.#step = new ModelStep(this.#services, this.#turn, this.#number, this.#withTools, this.#stop, ctx))
  }

  /** Takes an event of the model step. Returns the event for the reader, if any. */
  take(event: ModelCallEvent): TurnEvent | undefined {
    if (event.type === 'start') {
      this.#turn.who = { provider: event.provider, model: event.model }
      this.#turn.dropped = event.dropped ?? []
      return undefined
    }
    if (event.type === 'end') return this.#closeStep(event)
    this.#started = true
    if (event.type === 'reasoning' && event.text !== '' && this.#isShown && this.#turn.asked.reasoning)
      return { type: 'reasoning', content: event.text }
    if (event.type !== 'text') return undefined
    this.#turn.said += event.text
    return this.#isShown && !this.#turn.form ? { type: 'token', content: event.text, index: this.#turn.tokens++ } : undefined
  }

  #closeStep(end: ModelCallEnd): undefined {
    const { usage, made, steps } = this.#turn
    this.#step = undefined
    this.#stepEnd = end
    this.#turn.who = { provider: end.provider, model: end.model }
    this.#turn.tried = end.tried
    this.#turn.finish = end.finish
    usage.input += end.usage.input
    usage.output += end.usage.output
    usage.cached += end.usage.cached ?? 0
    usage.cacheWrite += end.usage.cacheWrite ?? 0
    usage.reasoning += end.usage.reasoning ?? 0
    if (end.cost !== undefined) this.#turn.cost = (this.#turn.cost ?? 0) + end.cost
    steps.push({ message: made.length, provider: end.provider, model: end.model, usage: end.usage })
    if (end.message) made.push(this.#withTools ? end.message : withoutCalls(end.message))
  }

  /** Closes the model step; returns the calls of tools that the turn runs. */
  endStep(): readonly ToolCallPart[] {
    this.#started = true
    // no further step could use the results of its calls
    if (!this.#withTools) return []
    const { clientTools } = this.#turn
    const calls = this.#stepEnd?.message?.parts.filter(part => part.type === 'tool_call') ?? []
    if (clientTools.size === 0) return calls
    this.#turn.clientCalls = calls.filter(({ tool }) => clientTools.has(tool))
    return calls.filter(({ tool }) => !clientTools.has(tool))
  }

  /** Whether the budget of the turn is used up after a step: the calls of the step do not run, or its answer was cut. */
  isSpent(calls: readonly ToolCallPart[]): boolean {
    const { asked, usage, cost = 0 } = this.#turn
    if (!asked.partial) return false
    const { tokenBudget = Infinity, costBudget = Infinity } = asked
    const budget = this.#stepEnd?.cutBy ?? (calls.length === 0 ? undefined : spentOf({ tokenBudget, costBudget }, usage, cost))
    if (budget) this.#turn.stop = { budget, reason: SPENT[budget] }
    return budget !== undefined
  }

  /** Whether this error of a step ends the turn with a partial reply. */
  stopsAt(error: unknown): boolean {
    const isPartial = this.#turn.asked.partial === true && this.#turn.made.length > 1
    if (!isPartial || codeOf(error) !== 'BUDGET_EXHAUSTED' || this.#ctx.signal.aborted) return false
    const { unit } = (error as SvcError).details
    this.#turn.stop = { budget: unit === 'cost' ? 'cost' : 'tokens', reason: messageOf(error) }
    return true
  }

  async stopped(): Promise<{ readonly end: TurnEnd; readonly events: readonly TurnEvent[] }> {
    const end = await this.complete()
    return { end, events: this.#isShown ? [end] : [] }
  }

  async complete(): Promise<TurnEnd> {
    await keepTurn(this.#services, this.#turn, 'completed', this.#ctx)
    return (this.#end = endEvent(this.#turn, 'completed', this.#ctx))
  }

  /** Ends the turn after an error. Returns the last events for the reader. Throws if the turn has not started. */
  async fail(error: unknown): Promise<{ readonly end: TurnEnd; readonly events: readonly TurnEvent[] }> {
    if (!this.#ctx.signal.aborted) this.#status = 'failed'
    this.#failure = error
    this.#span.fail(this.#status === 'failed' ? error : 'cancelled')
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
    const end = (this.#end ??= await this.#endIncomplete())
    this.#ctx.signal.removeEventListener('abort', this.#onAbort)
    await leaveTurn(this.#services, this.#turn)
    this.#services.titles?.offer(this.#turn, this.#ctx)
    const { id, kept, made } = this.#turn
    void this.#services.hooks.end({ turn: id, end, kept: kept ? made : [] }, this.#ctx)
    this.#publishEnd(end)
    if (this.#span.isRecording) this.#endSpan(end)
  }

  #publishEnd({ status, usage, durationMs, toolsUsed }: TurnEnd): void {
    const { events } = this.#services
    const data = {
      ...eventData(this.#turn),
      duration_ms: durationMs,
      input_tokens: usage.input,
      output_tokens: usage.output,
      tool_calls: toolsUsed.length,
    }
    if (status === 'failed') {
      const failed = { ...data, error_code: toPublicError(this.#failure).code }
      void events.publish(TurnFailed, failed, this.#ctx)
    } else void events.publish(status === 'completed' ? TurnCompleted : TurnCancelled, data, this.#ctx)
  }

  #endSpan({ status, provider, model, usage, cost }: TurnEnd) {
    const span = this.#span
    span.set({
      'gen_ai.provider.name': provider,
      'gen_ai.request.model': model,
      'gen_ai.usage.input_tokens': usage.input,
      'gen_ai.usage.output_tokens': usage.output,
      'svc.cost': cost,
      'svc.turn.status': status,
    })
    span.content(() => ({
      'gen_ai.input.messages': this.#turn.asked.messages ?? this.#turn.asked.message,
      'gen_ai.output.messages': this.#turn.said,
    }))
    span.end()
  }

  /** Keeps the partial reply of a turn that did not complete. */
  async #endIncomplete(): Promise<TurnEnd> {
    const end = await this.#step?.abandon()
    if (end) this.#closeStep(end)
    try {
      await keepTurn(this.#services, this.#turn, this.#status, this.#ctx)
    } catch (error) {
      const facts = { err: error, request_id: this.#ctx.requestId }
      this.#services.log.error(facts, 'failed to keep the partial reply of a turn')
    }
    return endEvent(this.#turn, this.#status, this.#ctx)
  }
}

const SPENT = {
  tokens: 'the budget of tokens is used up',
  cost: 'the budget of costs is used up',
} as const

/** The budget that is used up. A budget of 0 allows models that are free. */
function spentOf(
  { tokenBudget, costBudget }: { readonly tokenBudget: number; readonly costBudget: number },
  { input, output }: Turn['usage'],
  cost: number
): 'tokens' | 'cost' | undefined {
  if (input + output >= tokenBudget) return 'tokens'
  return cost >= costBudget && cost > 0 ? 'cost' : undefined
}

const eventData = ({ id, open, who }: Turn) => ({ turn: id, conversation_id: open.conversationId, ...who })
/** By the conventions of OpenTelemetry for generative AI. */
const attributesOf = ({ id, open, selected }: Turn) => ({
  'gen_ai.operation.name': 'invoke_agent',
  'gen_ai.agent.name': selected.profile.name,
  'gen_ai.conversation.id': open.conversationId === '' ? undefined : open.conversationId,
  'svc.turn.id': id,
  'svc.mode': selected.mode,
})

const withoutCalls = (message: StoredMessage): StoredMessage => ({
  ...message,
  parts: message.parts.filter(part => part.type !== 'tool_call'),
})

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
