import { type Log, type CallContext, withTimeout } from '@svc/core'
import type { Tool, ToolCall, ToolCallPart, ToolResult, ToolResultPart, ToolUse, ToolVerdict } from '@svc/core/contracts'
import type { Said } from './questions.ts'
import { type Arguments, faultOf } from './tool-arguments.ts'
import { boundedResult, failure, textOf } from './tool-result.ts'

/** What came of one tool call: for the model, for the caller, for the reply. */
export interface ToolOutcome {
  readonly part: ToolResultPart
  readonly use: ToolUse
  readonly result: ToolResult
}

export interface ToolUseParts {
  readonly tool: Tool | undefined
  readonly part: ToolCallPart
  readonly conversationId: string
  readonly mode: string
  /** False when the turn's budget of tool calls is spent. */
  readonly granted: boolean
  /** `timeoutMs` unless the tool has a limit of its own; the turn ends at `until` (`performance.now()`) in any case. */
  readonly limits: { readonly timeoutMs: number; readonly until: number; readonly resultLimit: number }
  readonly verdict: (call: ToolCall, ctx: CallContext) => Promise<ToolVerdict | undefined>
  /** Asks the person who reads along; `undefined` when nobody answered in time. Absent where nobody reads along. */
  readonly ask: ((args: Arguments, question: string) => Promise<Said | undefined>) | undefined
  readonly log: Log
}

/** Runs one tool call. Never throws but for an abort of the turn: what goes wrong is told to the model. */
export async function useTool(parts: ToolUseParts, ctx: CallContext): Promise<ToolOutcome> {
  const { part, limits } = parts
  const { args, run } = await permitted(parts, ctx)
  const begun = performance.now()
  const result = await bounded(run, limits.resultLimit, ctx)
  const failed = result.isError === true
  return {
    part: { type: 'tool_result', id: part.id, tool: part.tool, content: result.content, isError: failed },
    use: {
      tool: part.tool,
      callId: part.id,
      arguments: args,
      success: !failed,
      durationMs: Math.round(performance.now() - begun),
      ...(failed ? { error: textOf(result.content) } : {}),
    },
    result,
  }
}

/** Arguments as they are in the end, and what answers: the tool, or the words why it may not. */
interface Permitted {
  readonly args: Arguments
  readonly run: () => Promise<ToolResult> | ToolResult
}

async function permitted(parts: ToolUseParts, ctx: CallContext): Promise<Permitted> {
  const { tool, part } = parts
  const { arguments: args } = part
  const instead = (result: ToolResult, given = args): Permitted => ({ args: given, run: () => result })
  const refused = (why: string, given = args) => instead(failure(why), given)
  if (!tool) return refused(`There is no tool "${part.tool.slice(0, 100)}" in this turn.`)
  if (!parts.granted) return refused('This turn may make no more tool calls. Answer with what you have.')
  if (part.invalid !== undefined) return refused(`The arguments are no JSON object of a fit size: ${part.invalid.slice(0, 300)}`)
  const verdict = await verdictOn(tool, parts, ctx)
  if (verdict?.verdict === 'deny') return refused(`Not allowed: ${verdict.reason}`)
  if (verdict?.verdict === 'answer') return instead(verdict.result)
  const given = verdict?.verdict === 'change' ? verdict.arguments : args
  const fault = await faultOf(part.tool, tool, given, parts.log)
  if (fault !== undefined) return refused(fault, given)
  const question = questionOf(part.tool, tool, verdict)
  const denied = question === undefined ? undefined : await deniedBy(parts, given, question)
  if (denied !== undefined) return refused(`Not allowed: ${denied}`, given)
  return { args: given, run: () => call(tool, given, parts.limits, ctx) }
}

/** A tap that fails has not said that the call is allowed. */
async function verdictOn({ category, effects }: Tool, parts: ToolUseParts, ctx: CallContext): Promise<ToolVerdict | undefined> {
  const { part, conversationId, mode } = parts
  const about = { conversationId, mode, tool: part.tool, callId: part.id, arguments: part.arguments, category, effects }
  try {
    return await parts.verdict(about, ctx)
  } catch (error) {
    ctx.signal.throwIfAborted()
    parts.log.error(
      { err: error, tool: part.tool, request_id: ctx.requestId },
      'whether a tool call is allowed could not be told'
    )
    return { verdict: 'deny', reason: 'whether it is could not be found out.' }
  }
}

/** What a person is asked; a plugin that allows the call has answered for the tool. */
function questionOf(name: string, tool: Tool, verdict: ToolVerdict | undefined): string | undefined {
  if (verdict?.verdict === 'ask') return verdict.question
  return tool.asks && verdict?.verdict !== 'allow' ? `May the tool "${name}" run?` : undefined
}

async function deniedBy({ ask }: ToolUseParts, args: Arguments, question: string): Promise<string | undefined> {
  if (!ask) return `a person has to be asked (${question}), and in this turn nobody can be.`
  const said = await ask(args, question)
  if (!said) return 'a person was asked and did not answer in time.'
  return said.allow ? undefined : (said.reason ?? 'the person who was asked said no.')
}

function call(tool: Tool, args: Arguments, { timeoutMs, until }: ToolUseParts['limits'], ctx: CallContext): Promise<ToolResult> {
  const limit = Math.max(0, Math.ceil(Math.min(tool.timeoutMs ?? timeoutMs, until - performance.now())))
  return withTimeout(limit, signal => tool.call(args, { ...ctx, signal }), ctx)
}

/** What was answered, whoever did, as far as it may be taken; what was thrown, as an answer. */
async function bounded(run: Permitted['run'], limit: number, ctx: CallContext): Promise<ToolResult> {
  try {
    return boundedResult(await run(), limit)
  } catch (error) {
    ctx.signal.throwIfAborted()
    return boundedResult(failure(wordsOf(error)), limit)
  }
}

const SPEECHLESS = 'The tool failed and did not say why.'

/** A tool may throw anything, even what cannot be looked at. */
function wordsOf(error: unknown): string {
  try {
    const { message, hint } = (typeof error === 'string' ? { message: error } : Object(error)) as {
      message?: unknown
      hint?: unknown
    }
    if (typeof message !== 'string' || message.trim() === '') return SPEECHLESS
    return typeof hint === 'string' && hint.trim() !== '' ? `${message}; ${hint}` : message
  } catch {
    return SPEECHLESS
  }
}
