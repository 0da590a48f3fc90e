import { type CallContext, codeOf, type SchemaProblem, type Log, messageOf, redactData, redactText, withTimeout } from '@svc/core'
import type {
  ContentPart,
  Tool,
  ToolCall,
  ToolCallPart,
  ToolResult,
  ToolResultPart,
  ToolUse,
  ToolVerdict,
} from '@svc/core/contracts'
import { boundedJson, CONTENT_PARTS, contentNote, contentText, cutContent, isWithin, logToolFailure } from '@svc/plugin-kit'
import { type ParametersCheck, toolSchema } from '@svc/plugin-kit/tool-schema'
import { answerByForms, type AskPerson, type OpenDialog, runDialog } from './tool-dialog.ts'
import { failure } from './tool-list.ts'
import type { WaitingQuestion } from './waiting-turns.ts'

/** The outcome of a tool call: the part for the model, the record for the caller, and the result. */
export interface ToolOutcome {
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
  /** The question of an interrupted call. */
  readonly waiting: WaitingQuestion | undefined
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
export async function useTool(parts: ToolUseOptions, ctx: CallContext): Promise<ToolOutcome> {
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

type Called = { readonly arguments: Arguments }
/** Whether two calls of a tool have the same arguments. */
export const isSame = (a: Called, b: Called) => JSON.stringify(a.arguments) === JSON.stringify(b.arguments)

const CHANGED = 'This call cannot continue: since it asked the user, a plugin has changed its arguments.'

/** The final arguments, and the function that returns the result or the refusal. */
interface Permitted {
  readonly args: Arguments
  readonly run: () => Promise<ToolResult> | ToolResult
}

const instead = (result: ToolResult, args: Arguments): Permitted => ({ args, run: () => result })
const refused = (why: string, args: Arguments) => instead(failure(why), args)

async function permitted(parts: ToolUseOptions, ctx: CallContext): Promise<Permitted> {
  const { tool, part } = parts
  const { arguments: args } = part
  if (parts.instead) return instead(parts.instead, args)
  if (!tool) return refused(`There is no tool "${part.tool.slice(0, 100)}" in this turn.`, args)
  if (!parts.granted) return refused('This turn may make no more tool calls. Answer with what you have.', args)
  if (part.invalid !== undefined)
    return refused(`The arguments are not a JSON object, or exceed their size limit: ${part.invalid.slice(0, 300)}`, args)
  const verdict = await verdictOn(tool, parts, ctx)
  if (verdict?.verdict === 'deny') return refused(`Not allowed: ${verdict.reason}`, args)
  if (verdict?.verdict === 'answer') return instead(verdict.result, args)
  return permittedByUser(tool, verdict, parts, ctx)
}

/** Checks the final arguments of a call that no plugin has denied, then asks the user if the call needs it. */
async function permittedByUser(
  tool: Tool,
  verdict: ToolVerdict | undefined,
  parts: ToolUseOptions,
  ctx: CallContext
): Promise<Permitted> {
  const { part } = parts
  const given = verdict?.verdict === 'change' ? verdict.arguments : part.arguments
  const problem = await argumentProblem(part.tool, tool, given, parts.log)
  if (problem !== undefined) return refused(problem.text, given)
  // it has the permission, if it needs one
  if (parts.waiting?.dialog) {
    if (!tool.run || !isSame(parts.waiting, { arguments: given })) return refused(CHANGED, given)
    return { args: given, run: () => call(tool, given, parts, ctx) }
  }
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

export const USER_DENIED = 'the user denied the call.'

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

function call(tool: Tool, args: Arguments, parts: ToolUseOptions, ctx: CallContext): Promise<ToolResult> {
  const { ask, forms, limits, waiting } = parts
  if (ask && forms && tool.run) return runWithForms(tool, ask, { args, limits, waiting: waiting?.dialog }, ctx)
  return withTimeout(limitFor(tool, limits), signal => tool.call(args, { ...ctx, signal }), ctx)
}

/** Calls a tool that may ask the person. */
async function runWithForms(
  tool: Tool,
  ask: AskPerson,
  { args, limits, waiting }: { readonly args: Arguments; readonly limits: Limits; readonly waiting: OpenDialog | undefined },
  ctx: CallContext
): Promise<ToolResult> {
  const limited = () => {
    const ms = limitFor(tool, limits)
    const until = performance.now() + ms
    const late = () => new Error(`the work did not end within ${ms} ms`)
    return <T>(work: () => Promise<T>) =>
      withTimeout(Math.max(0, Math.ceil(until - performance.now())), work, { signal: ctx.signal, late })
  }
  // oxlint-disable-next-line require-yield
  async function* answer(open: OpenDialog): AsyncGenerator<never, OpenDialog['answers']> {
    return answerByForms(open, args, ask)
  }
  const { value } = await runDialog({ tool, args, can: ['elicitation/create'], limited, answer, waiting }, ctx).next()
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
