import { type CallContext, codeOf } from '@svc/core'
import { type ToolCallPart, ToolCompleted, ToolFailed, type ToolResult, type TurnEvent } from '@svc/core/contracts'
import { contentText } from '@svc/plugin-kit'
import { turnTimeout } from './errors.ts'
import type { PersonAnswer } from './questions.ts'
import { canBeSaved, saveTurn } from './saved-turn.ts'
import type { AskPerson } from './tool-dialog.ts'
import { addCalled, failure, toolIn } from './tool-list.ts'
import { isSame, type ToolOutcome, USER_DENIED, useTool } from './tool-use.ts'
import type { ChatServices, Turn } from './turn.ts'
import type { OpenTurnQuestions, WaitingQuestion } from './waiting-turns.ts'

/** The last model step, and a step after the tool budget is used up, cannot call tools. */
export const mayUseTools = (services: ChatServices, turn: Turn, number: number): boolean =>
  number < services.config.max_rounds && countUsed(turn) < budgetOf(services, turn)

/** Calls that count for the tool budget. A search for tools does not. */
const countUsed = ({ toolsUsed, list }: Turn) =>
  list.index ? toolsUsed.reduce((sum, { tool }) => sum + (tool === list.index?.name ? 0 : 1), 0) : toolsUsed.length

const budgetOf = ({ modes }: ChatServices, { asked, selected }: Turn) =>
  Math.min(modes.get(selected.mode)?.toolBudget ?? Number.POSITIVE_INFINITY, asked.toolBudget ?? Number.POSITIVE_INFINITY)

/** Runs the tool calls of a model step. Their results keep the order of the calls. */
export async function* runTools(
  services: ChatServices,
  turn: Turn,
  calls: readonly ToolCallPart[],
  isShown: boolean,
  ctx: CallContext
): AsyncGenerator<TurnEvent, void> {
  if (isShown && !turn.interrupted)
    for (const call of calls) yield { type: 'tool_call', tool: call.tool, callId: call.id, arguments: call.arguments }
  const outcomes =
    isShown && turn.asked.interactive === true
      ? yield* runAsking(services, turn, calls, ctx)
      : await runAll(services, turn, calls, undefined, ctx)
  turn.interrupted = undefined
  if (performance.now() >= turn.until) throw turnTimeout(turn.who.provider, turn.limitMs)
  turn.toolsUsed.push(...outcomes.map(outcome => outcome.use))
  turn.made.push({ role: 'tool', parts: outcomes.map(outcome => outcome.part) })
  addCalled(turn.list, turn.made.slice(-2), turn.added)
  if (isShown) for (const outcome of outcomes) yield resultEvent(outcome)
}

type Ask = (call: ToolCallPart, ...about: Parameters<AskPerson>) => ReturnType<AskPerson>

function runAll(
  services: ChatServices,
  turn: Turn,
  calls: readonly ToolCallPart[],
  ask: Ask | undefined,
  ctx: CallContext
): Promise<ToolOutcome[]> {
  const { config, hooks, log, tools, events } = services
  const shared = {
    forms: turn.asked.forms === true,
    conversationId: turn.open.conversationId,
    mode: turn.selected.mode,
    limits: { timeoutMs: config.tool_timeout_ms, until: turn.until, resultLimit: config.tool_result_limit },
    verdict: hooks.toolCall,
    log,
  }
  const granted = grantedCalls(calls, turn, Math.max(0, budgetOf(services, turn) - countUsed(turn)))
  return inOrder(calls, config.max_parallel_tools, async part => {
    ctx.signal.throwIfAborted()
    const asking: AskPerson | undefined = ask && ((args, question, form) => ask(part, args, question, form))
    const own = turn.keys ? { ...ctx, idempotencyKey: turn.keys.of(part) } : ctx
    const tool = toolIn(turn.list, part.tool)
    const plugin = tools.owner(part.tool)
    const [waiting, instead] = [waitingFor(turn, part), interruptedResult(turn, part)]
    const about = { tool, plugin, part, waiting, instead, granted: granted.has(part), ask: asking }
    const outcome = await useTool({ ...shared, ...about }, own)
    const { success, durationMs } = outcome.use
    const data = {
      turn: turn.id,
      conversation_id: shared.conversationId,
      tool: part.tool,
      call_id: part.id,
      duration_ms: durationMs,
    }
    void events.publish(success ? ToolCompleted : ToolFailed, data, ctx)
    return outcome
  })
}

const UNKNOWN = 'It is unknown whether this call ran: the server process that ran it has exited.'

/** The question of a call of an interrupted step. */
const waitingFor = ({ interrupted }: Turn, { id }: ToolCallPart): WaitingQuestion | undefined =>
  interrupted?.answers.get(id)?.asked ?? interrupted?.questions.open(id)

/** The result of a call of an interrupted step, unless it waits for a person, or has the answer. */
function interruptedResult(turn: Turn, part: ToolCallPart): ToolResult | undefined {
  if (!turn.interrupted) return undefined
  const waiting = waitingFor(turn, part)
  if (!waiting) return failure(UNKNOWN)
  const { allow = true, reason = USER_DENIED } = turn.interrupted.answers.get(part.id)?.said ?? {}
  // the tool gets the answer to its form, also a refusal
  return allow || waiting.dialog ? undefined : failure(`Not allowed: ${reason}`)
}

/** Searches for tools in one model step. */
const MAX_SEARCHES = 8

/** The calls that may run: `left` calls of tools, and some searches for tools. */
function grantedCalls(calls: readonly ToolCallPart[], { list }: Turn, left: number): ReadonlySet<ToolCallPart> {
  const searches = calls.filter(call => call.tool === list.index?.name)
  if (searches.length === 0) return new Set(calls.slice(0, left))
  const others = calls.filter(call => call.tool !== list.index?.name)
  return new Set([...searches.slice(0, MAX_SEARCHES), ...others.slice(0, left)])
}

/** Runs `work` for each item, at most `atOnce` at a time. The results keep the order of the items. */
async function inOrder<T, R>(items: readonly T[], atOnce: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const open = items.entries()
  const worker = async () => {
    for (const [at, item] of open) results[at] = await work(item)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker))
  return results
}

/** Runs the calls and yields their questions. Aborts them when the reader of the stream stops. */
async function* runAsking(
  services: ChatServices,
  turn: Turn,
  calls: readonly ToolCallPart[],
  ctx: CallContext
): AsyncGenerator<TurnEvent, ToolOutcome[]> {
  const stop = new AbortController()
  const callContext = { ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) }
  const questions: TurnEvent[] = []
  const stored = storedQuestions(services, turn, ctx)
  let questionAdded = Promise.withResolvers<void>()
  const show = (event: TurnEvent) => {
    questions.push(event)
    questionAdded.resolve()
  }
  // also a running tool stops: its error would become the result of the call
  const leaveIfTaken = (error: unknown): never => {
    if (codeOf(error) === 'STORE_FENCED') stop.abort(error)
    throw error
  }
  const ask: Ask = async (call, args, question, form) => {
    const waitMs = Math.max(0, Math.min(services.config.ask_timeout_ms, turn.until - performance.now()))
    const event = {
      type: 'ask',
      tool: call.tool,
      callId: call.id,
      arguments: args,
      question,
      ...(form && { form: form.shown }),
      until: Date.now() + Math.round(waitMs),
    } as const
    const asked = { event, waitMs, show, ...(form && { form }) }
    if (stored) return askStored(services, turn, { ...asked, stored }, callContext).catch(leaveIfTaken)
    const answer = askHere(services, turn, asked, callContext, {})
    show(event)
    return answer
  }
  let isOver = false
  const outcomes = runAll(services, turn, calls, ask, callContext).finally(() => (isOver = true))
  // it can fail while an event is being read; the await below throws that error
  outcomes.catch(() => undefined)
  try {
    while (!isOver) {
      await Promise.race([questionAdded.promise, outcomes])
      questionAdded = Promise.withResolvers()
      for (const event of questions.splice(0)) yield event
    }
    return await outcomes
  } catch (error) {
    // another worker continues the turn, and stores it
    if (codeOf(error) === 'STORE_FENCED') turn.handed = true
    throw error
  } finally {
    stop.abort(new Error('the turn has ended'))
    await stored?.leave()
  }
}

type AskEvent = Extract<TurnEvent, { type: 'ask' }>

interface OpenAsk {
  readonly event: AskEvent
  readonly waitMs: number
  readonly form?: NonNullable<Parameters<AskPerson>[2]>
  readonly show: (event: TurnEvent) => void
}

function askHere(
  { questions }: ChatServices,
  { open, journal }: Turn,
  { event: { type: _type, callId, ...about }, waitMs, form }: OpenAsk,
  ctx: CallContext,
  options: Pick<NonNullable<Parameters<ChatServices['questions']['ask']>[4]>, 'taken'>
): Promise<PersonAnswer | undefined> {
  const turn = journal ? { turnId: journal.id } : {}
  const shown = { conversationId: open.conversationId, ...turn, ...about }
  return questions.ask(callId, waitMs, shown, ctx, { ...options, check: form?.check })
}

/** The stored questions of this step; undefined for a turn that another worker could not continue. */
function storedQuestions({ waiting }: ChatServices, turn: Turn, ctx: CallContext): OpenTurnQuestions | undefined {
  if (turn.interrupted) return turn.interrupted.questions
  if (!waiting || !turn.journal || !canBeSaved(turn)) return undefined
  const about = { owner: ctx.principal.id, requestId: ctx.requestId, conversationId: turn.open.conversationId }
  return waiting.open(turn.journal, about, () => saveTurn(turn))
}

/** Asks with a question that survives this worker. It is stored before it is shown, and removed before the answer counts. */
async function askStored(
  services: ChatServices,
  turn: Turn,
  { stored, ...asked }: OpenAsk & { readonly stored: OpenTurnQuestions },
  ctx: CallContext
): Promise<PersonAnswer | undefined> {
  const { event, waitMs, form } = asked
  const { type: _type, ...about } = event
  const { callId } = about
  const before = turn.interrupted?.answers.get(callId)
  turn.interrupted?.answers.delete(callId)
  // a plugin can have changed the arguments since: then the person sees them first
  if (before && isSame(before.asked, about) && !before.asked.form === !form) return before.said
  const shown = stored.open(callId)
  const since = Date.now()
  const until = about.until ?? since + waitMs
  const shownUntil = shown?.shownUntil ?? until
  const taken = await stored.add({ ...about, since, until, shownUntil, ...(form && { dialog: form.dialog }) })
  const signal = taken ? AbortSignal.any([ctx.signal, taken]) : ctx.signal
  const answer = askHere(services, turn, asked, { ...ctx, signal }, { taken: () => stored.close(callId) })
  if (!shown) asked.show(event)
  const said = await answer
  await stored.close(callId)
  return said
}

function resultEvent({ use, part, result }: ToolOutcome): TurnEvent {
  return {
    type: 'tool_result',
    tool: use.tool,
    callId: use.callId,
    success: use.success,
    result: result.structured ?? contentText(part.content),
    error: use.error ?? null,
    durationMs: use.durationMs,
  }
}
