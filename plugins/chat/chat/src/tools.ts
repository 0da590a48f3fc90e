import { type CallContext, codeOf, type SchemaProblem, type Log, messageOf, redactData, redactText, withTimeout } from '@svc/core'
import {
  type ContentPart,
  type InputRequest,
  type Json,
  type Tool,
  type ToolCall,
  type ToolCallPart,
  ToolCompleted,
  ToolFailed,
  type ToolResult,
  type ToolResultPart,
  type ToolUse,
  type ToolVerdict,
  type TurnEvent,
} from '@svc/core/contracts'
import { boundedJson, CONTENT_PARTS, contentNote, contentText, cutContent, isWithin, logToolFailure } from '@svc/plugin-kit'
import { type ParametersCheck, toolSchema } from '@svc/plugin-kit/tool-schema'
import { turnTimeout } from './errors.ts'
import type { PersonAnswer } from './questions.ts'
import { canBeSaved, saveTurn } from './saved-turn.ts'
import { answerByForm, type AskPerson, runDialog } from './tool-dialog.ts'
import { addCalled, failure, toolIn } from './tool-list.ts'
import type { ChatServices, Turn } from './turn.ts'
import type { OpenTurnQuestions } from './waiting-turns.ts'

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
    const instead = interruptedResult(turn, part)
    const outcome = await useTool({ ...shared, tool, plugin, part, instead, granted: granted.has(part), ask: asking }, own)
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

const UNKNOWN =
  'It is unknown whether this call ran: the server process that ran it has exited. If it asked the user something, it does not ask again.'

/** The result of a call of an interrupted step, unless it waits for permission, or has it. */
function interruptedResult({ interrupted }: Turn, { id }: ToolCallPart): ToolResult | undefined {
  if (!interrupted) return undefined
  const answer = interrupted.answers.get(id)
  if (answer) return answer.said.allow ? undefined : failure(`Not allowed: ${answer.said.reason ?? USER_DENIED}`)
  return interrupted.questions.isOpen(id) ? undefined : failure(UNKNOWN)
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
  const ask: Ask = async (call, args, question, form) => {
    const waitMs = Math.max(0, Math.min(services.config.ask_timeout_ms, turn.until - performance.now()))
    const event = {
      type: 'ask',
      tool: call.tool,
      callId: call.id,
      arguments: args,
      question,
      ...(form && { form: form.shown }),
    } as const
    if (form || !stored) {
      const answer = askHere(services, turn, event, waitMs, callContext, { check: form?.check })
      show(event)
      return answer
    }
    return askStored(services, turn, { event, waitMs, stored, show }, callContext)
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

function askHere(
  { questions }: ChatServices,
  { open, journal }: Turn,
  { type: _type, callId, ...about }: AskEvent,
  waitMs: number,
  ctx: CallContext,
  options: Parameters<ChatServices['questions']['ask']>[4]
): Promise<PersonAnswer | undefined> {
  const turn = journal ? { turnId: journal.id } : {}
  return questions.ask(callId, waitMs, { conversationId: open.conversationId, ...turn, ...about }, ctx, options)
}

/** The stored questions of this step; undefined for a turn that another worker could not continue. */
function storedQuestions({ waiting }: ChatServices, turn: Turn, ctx: CallContext): OpenTurnQuestions | undefined {
  if (turn.interrupted) return turn.interrupted.questions
  if (!waiting || !turn.journal || !canBeSaved(turn)) return undefined
  const about = { owner: ctx.principal.id, requestId: ctx.requestId, conversationId: turn.open.conversationId }
  return waiting.open(turn.journal, about, () => saveTurn(turn))
}

interface StoredAsk {
  readonly event: AskEvent
  readonly waitMs: number
  readonly stored: OpenTurnQuestions
  readonly show: (event: TurnEvent) => void
}

/** Asks for permission with a question that survives this worker. It is stored before it is shown, and removed before the answer counts. */
async function askStored(
  services: ChatServices,
  turn: Turn,
  { event, waitMs, stored, show }: StoredAsk,
  ctx: CallContext
): Promise<PersonAnswer | undefined> {
  const { tool, callId, arguments: args, question } = event
  const before = turn.interrupted?.answers.get(callId)
  // a plugin can have changed the arguments since: then the person sees them first
  if (before && JSON.stringify(before.arguments) === JSON.stringify(args)) return before.said
  const isShown = !before && stored.has(callId)
  const since = Date.now()
  const taken = await stored.add({ callId, tool, arguments: args, question, since, until: since + waitMs })
  const signal = taken ? AbortSignal.any([ctx.signal, taken]) : ctx.signal
  const answer = askHere(services, turn, event, waitMs, { ...ctx, signal }, { taken: () => stored.close(callId) })
  if (!isShown) show(event)
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

/** The outcome of a tool call: the part for the model, the record for the caller, and the result. */
interface ToolOutcome {
  readonly part: ToolResultPart
  readonly use: ToolUse
  readonly result: ToolResult
}

/** The call that a plugin allows or denies. */
export type VerdictOptions = Pick<ToolUseOptions, 'part' | 'conversationId' | 'mode' | 'verdict' | 'log'>

interface ToolUseOptions {
  readonly tool: Tool | undefined
  /** The plugin that added the tool. */
  readonly plugin: string | undefined
  readonly part: ToolCallPart
  readonly conversationId: string
  readonly mode: string
  /** The result of a call that must not run. */
  readonly instead: ToolResult | undefined
  /** False if the tool budget of the turn is used up. */
  readonly granted: boolean
  /** A limit of the tool replaces `timeoutMs`. The turn always ends at `until` (`performance.now()`). */
  readonly limits: { readonly timeoutMs: number; readonly until: number; readonly resultLimit: number }
  readonly verdict: (call: ToolCall, ctx: CallContext) => Promise<ToolVerdict | undefined>
  /** Absent without a stream. */
  readonly ask: AskPerson | undefined
  /** Whether that person answers forms. */
  readonly forms: boolean
  readonly log: Log
}

/** Runs one tool call. Throws only if the turn is aborted. Other errors become the result that the model reads. */
async function useTool(parts: ToolUseOptions, ctx: CallContext): Promise<ToolOutcome> {
  const { part, limits } = parts
  const { args, run } = await permitted(parts, ctx)
  const begun = performance.now()
  const onThrown = (thrown: unknown) =>
    logToolFailure(parts.log, part.tool, { thrown, plugin: parts.plugin, requestId: ctx.requestId })
  const result = await bounded(run, { limit: limits.resultLimit, onThrown }, ctx)
  const failed = result.isError === true
  return {
    part: { type: 'tool_result', id: part.id, tool: part.tool, content: result.content, isError: failed },
    use: {
      tool: part.tool,
      callId: part.id,
      arguments: args,
      success: !failed,
      durationMs: Math.round(performance.now() - begun),
      ...(failed ? { error: contentText(result.content) } : {}),
    },
    result,
  }
}

/** The final arguments, and the function that returns the result or the refusal. */
interface Permitted {
  readonly args: Arguments
  readonly run: () => Promise<ToolResult> | ToolResult
}

async function permitted(parts: ToolUseOptions, ctx: CallContext): Promise<Permitted> {
  const { tool, part } = parts
  const { arguments: args } = part
  const instead = (result: ToolResult, given = args): Permitted => ({ args: given, run: () => result })
  const refused = (why: string, given = args) => instead(failure(why), given)
  if (parts.instead) return instead(parts.instead)
  if (!tool) return refused(`There is no tool "${part.tool.slice(0, 100)}" in this turn.`)
  if (!parts.granted) return refused('This turn may make no more tool calls. Answer with what you have.')
  if (part.invalid !== undefined)
    return refused(`The arguments are not a JSON object, or exceed their size limit: ${part.invalid.slice(0, 300)}`)
  const verdict = await verdictOn(tool, parts, ctx)
  if (verdict?.verdict === 'deny') return refused(`Not allowed: ${verdict.reason}`)
  if (verdict?.verdict === 'answer') return instead(verdict.result)
  const given = verdict?.verdict === 'change' ? verdict.arguments : args
  const problem = await argumentProblem(part.tool, tool, given, parts.log)
  if (problem !== undefined) return refused(problem.text, given)
  const question = questionOf(part.tool, tool, verdict)
  const denied = question === undefined ? undefined : await deniedBy(parts, given, question)
  if (denied !== undefined) return refused(`Not allowed: ${denied}`, given)
  return { args: given, run: () => call(tool, given, parts, ctx) }
}

/** A failing tap denies the call. */
export async function verdictOn(
  { category, effects }: Tool,
  parts: VerdictOptions,
  ctx: CallContext
): Promise<ToolVerdict | undefined> {
  const { part, conversationId, mode } = parts
  const about = { conversationId, mode, tool: part.tool, callId: part.id, arguments: part.arguments, category, effects }
  try {
    return await parts.verdict(about, ctx)
  } catch (error) {
    ctx.signal.throwIfAborted()
    parts.log.error({ err: error, tool: part.tool, request_id: ctx.requestId }, 'failed to check a tool call; the call is denied')
    return { verdict: 'deny', reason: 'the permission check failed.' }
  }
}

/** The question for the user. A plugin that allows the call answers it in place of the user. */
export function questionOf(name: string, tool: Tool, verdict: ToolVerdict | undefined): string | undefined {
  if (verdict?.verdict === 'ask') return verdict.question
  return tool.asks && verdict?.verdict !== 'allow' ? `May the tool "${name}" run?` : undefined
}

const USER_DENIED = 'the user denied the call.'

async function deniedBy({ ask }: ToolUseOptions, args: Arguments, question: string): Promise<string | undefined> {
  if (!ask) return `the call needs the approval of a person (${question}), and this turn has no interactive reader.`
  const answer = await ask(args, question)
  if (!answer) return 'the user did not answer in time.'
  return answer.allow ? undefined : (answer.reason ?? USER_DENIED)
}

type Limits = ToolUseOptions['limits']

/** Milliseconds for one call of a tool. */
const limitFor = (tool: Tool, { timeoutMs, until }: Limits) =>
  Math.max(0, Math.ceil(Math.min(tool.timeoutMs ?? timeoutMs, until - performance.now())))

function call(tool: Tool, args: Arguments, { ask, forms, limits }: ToolUseOptions, ctx: CallContext): Promise<ToolResult> {
  if (ask && forms && tool.run) return runWithForms(tool, ask, args, limits, ctx)
  return withTimeout(limitFor(tool, limits), signal => tool.call(args, { ...ctx, signal }), ctx)
}

/** Calls a tool that may ask the person. */
async function runWithForms(tool: Tool, ask: AskPerson, args: Arguments, limits: Limits, ctx: CallContext): Promise<ToolResult> {
  const limited = () => {
    const ms = limitFor(tool, limits)
    const until = performance.now() + ms
    const late = () => new Error(`the work did not end within ${ms} ms`)
    return <T>(work: () => Promise<T>) =>
      withTimeout(Math.max(0, Math.ceil(until - performance.now())), work, { signal: ctx.signal, late })
  }
  // oxlint-disable-next-line require-yield
  async function* answer(requests: Readonly<Record<string, InputRequest>>): AsyncGenerator<never, Record<string, Json>> {
    const answers: Record<string, Json> = {}
    for (const [key, request] of Object.entries(requests)) answers[key] = await answerByForm(request, args, ask)
    return answers
  }
  const { value } = await runDialog({ tool, args, can: ['elicitation/create'], limited, answer }, ctx).next()
  return value
}

/** Returns the result within its limits; an error becomes a result. */
async function bounded(
  run: Permitted['run'],
  { limit, onThrown }: { readonly limit: number; readonly onThrown: (thrown: unknown) => void },
  ctx: CallContext
): Promise<ToolResult> {
  try {
    return boundedResult(redactData(await run()), limit)
  } catch (error) {
    ctx.signal.throwIfAborted()
    onThrown(error)
    return boundedResult(failure(redactText(errorText(error))), limit)
  }
}

const NO_MESSAGE = 'The tool failed without an error message.'

/** A tool can throw any value, even an object whose getters throw. */
export function errorText(error: unknown): string {
  try {
    const { message, hint } = (typeof error === 'string' ? { message: error } : Object(error)) as {
      message?: unknown
      hint?: unknown
    }
    if (typeof message !== 'string' || message.trim() === '') return NO_MESSAGE
    return typeof hint === 'string' && hint.trim() !== '' ? `${message}; ${hint}` : message
  } catch {
    return NO_MESSAGE
  }
}

export type Arguments = ToolCallPart['arguments']

const checks = new WeakMap<Tool, Promise<ParametersCheck>>()
/** Tools whose broken schema is already logged. */
const broken = new WeakSet<Tool>()

const SMALL = 10_000
const MAX_PROBLEMS = 10

/** Why arguments cannot be used: for the model, and the path of the first problem. */
export interface ArgumentProblem {
  readonly text: string
  readonly field: string
}

/** Describes the problems of the arguments; `undefined` for valid arguments. */
export async function argumentProblem(name: string, tool: Tool, args: Arguments, log: Log): Promise<ArgumentProblem | undefined> {
  const problem = (text: string, field = 'arguments') => ({ text, field })
  try {
    const { check } = await checkOf(name, tool, log)
    // the check fills in defaults; the arguments of the call must not change
    const problems = check(structuredClone(args), isWithin(args, SMALL) ? 'all' : 'first')
    if (problems.length === 0) return undefined
    const shown = problems.slice(0, MAX_PROBLEMS).map(problemText).join('; ')
    return problem(`The arguments are invalid: ${shown}. Fix them and call again.`, fieldOf(problems[0]!))
  } catch (error) {
    if (error instanceof RangeError) return problem('The arguments are nested too deeply.')
    if (codeOf(error) === 'ARGUMENTS_TOO_LONG') return problem(`The arguments are invalid: ${messageOf(error)}.`)
    if (!broken.has(tool))
      log.error({ err: error, tool: name }, 'the parameters of a tool are not a valid JSON Schema; the tool cannot be called')
    broken.add(tool)
    const why = messageOf(error).slice(0, 200)
    return problem(
      `The tool "${name}" is broken and cannot be called: its parameters are not a valid JSON Schema (${why}).`,
      'name'
    )
  }
}

function checkOf(name: string, tool: Tool, log: Log): Promise<ParametersCheck> {
  const check = checks.get(tool) ?? madeFor(name, tool, log)
  checks.set(tool, check)
  return check
}

async function madeFor(name: string, tool: Tool, log: Log): Promise<ParametersCheck> {
  const made = await toolSchema(tool.parameters)
  const patterns = made.unchecked.slice(0, MAX_PROBLEMS).map(pattern => pattern.slice(0, 200))
  if (patterns.length > 0) log.warn({ tool: name, patterns }, 'svc does not check some patterns in the parameters of a tool')
  return made
}

const fieldOf = ({ path }: SchemaProblem) => (path === '' ? 'arguments' : `arguments.${path.slice(0, 200)}`)

const problemText = ({ path, message }: SchemaProblem) => `${(path || 'the value').slice(0, 200)} ${message.slice(0, 500)}`

/** Checks the result of a tool, which is untrusted, and cuts it to `limit` characters. Throws TypeError for an invalid result. */
export function boundedResult(answer: unknown, limit: number): ToolResult {
  const { content, structured, isError } = (answer ?? {}) as Partial<ToolResult>
  if (!Array.isArray(content) || !content.slice(0, CONTENT_PARTS).every(isPart))
    throw new TypeError('the tool did not return { content: [{ type: "text", text }] }')
  const kept = cutContent(content as readonly ContentPart[], limit)
  const failed = isError === true ? { isError } : {}
  if (structured === undefined) return { content: kept, ...failed }
  const json = boundedJson(structured, limit)
  if (json === undefined) return { content: [...kept, contentNote(`[data left out: more than ${limit} characters]`)], ...failed }
  return { content: kept.length > 0 ? kept : [{ type: 'text', text: json }], structured, ...failed }
}

function isPart(part: unknown): boolean {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown }
  return typeof type === 'string' && (type !== 'text' || typeof text === 'string')
}
