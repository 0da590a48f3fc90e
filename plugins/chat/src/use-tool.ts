import { type Fault, messageOf, type Schema, schema, type Use, within } from '@svc/core'
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
  /** `timeoutMs` unless the tool has a limit of its own; `leftMs` of the turn in any case. */
  readonly limits: { readonly timeoutMs: number; readonly leftMs: number; readonly resultLimit: number }
  ask(call: ToolCall, use: Use): Promise<ToolVerdict | undefined>
  readonly now: () => number
}

/** Runs one tool call. Never throws but for an abort of the turn: what goes wrong is told to the model. */
export async function useTool(parts: ToolUseParts, use: Use): Promise<ToolOutcome> {
  const { part, limits } = parts
  const begun = parts.now()
  const { result, args } = await answer(parts, use)
  const content = capped(result.content, limits.resultLimit)
  const failed = result.isError === true
  return {
    part: { type: 'tool_result', id: part.id, tool: part.tool, content, isError: failed },
    use: {
      tool: part.tool,
      callId: part.id,
      arguments: args,
      success: !failed,
      durationMs: Math.round(parts.now() - begun),
      ...(failed ? { error: textOf(content) } : {}),
    },
    result: { ...result, content },
  }
}

type Arguments = ToolCallPart['arguments']

async function answer(parts: ToolUseParts, use: Use): Promise<{ result: ToolResult; args: Arguments }> {
  const { tool, part } = parts
  const { arguments: args } = part
  if (!tool) return { args, result: failure(`There is no tool "${part.tool}" in this turn.`) }
  if (!parts.granted) return { args, result: failure('This turn may make no more tool calls. Answer with what you have.') }
  if (part.invalid !== undefined)
    return { args, result: failure(`The arguments are no JSON object: ${part.invalid.slice(0, 200)}`) }
  const verdict = await parts.ask({ ...callOf(parts), category: tool.category, effects: tool.effects }, use)
  if (verdict?.verdict === 'deny') return { args, result: failure(`Not allowed: ${verdict.reason}`) }
  if (verdict?.verdict === 'answer') return { args, result: verdict.result }
  const final = verdict?.verdict === 'change' ? verdict.arguments : args
  const faults = checkArguments(tool, final)
  if (faults.length > 0)
    return {
      args: final,
      result: failure(`The arguments do not fit: ${faults.map(words).join('; ')}. Mend them and call again.`),
    }
  return { args: final, result: await run(tool, final, parts.limits, use) }
}

const callOf = ({ part, conversationId, mode }: ToolUseParts) => ({
  conversationId,
  mode,
  tool: part.tool,
  callId: part.id,
  arguments: part.arguments,
})

const words = (fault: Fault) => `${fault.path || 'the whole'} ${fault.message}`

const schemas = new WeakMap<Tool, Schema>()

function checkArguments(tool: Tool, args: Arguments): Fault[] {
  const known = schemas.get(tool) ?? schema(tool.parameters)
  schemas.set(tool, known)
  // the check fills in defaults, and what is given to a tool is nobody's to change
  return known.check(structuredClone(args))
}

async function run(tool: Tool, args: Arguments, { timeoutMs, leftMs }: ToolUseParts['limits'], use: Use): Promise<ToolResult> {
  const limit = Math.ceil(Math.min(tool.timeoutMs ?? timeoutMs, leftMs))
  try {
    return asResult(await within(limit, signal => tool.call(args, { ...use, signal }), use))
  } catch (error) {
    if (use.signal.aborted) throw use.signal.reason
    return failure(messageOf(error))
  }
}

/** A tool is somebody's code: what it answers is looked at before anybody relies on it. */
function asResult(answer: ToolResult | undefined): ToolResult {
  const { content } = (answer ?? {}) as Partial<ToolResult>
  const good =
    Array.isArray(content) &&
    content.every(part => typeof part?.type === 'string' && (part.type !== 'text' || typeof part.text === 'string'))
  if (!answer || !good) throw new TypeError('the tool did not answer { content: [{ type: "text", text }] }')
  JSON.stringify(answer.structured)
  return answer
}

const failure = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })

export const textOf = (content: readonly ContentPart[]) =>
  content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')

/** Cuts the texts of a result to so many characters in all, with a note. */
function capped(content: readonly ContentPart[], limit: number): readonly ContentPart[] {
  let left = limit
  return content.map(part => {
    if (part.type !== 'text') return part
    const cut = part.text.length > left
    const text = cut ? `${part.text.slice(0, left)}\n[cut: ${part.text.length - left} characters more]` : part.text
    left = Math.max(0, left - part.text.length)
    return cut ? { ...part, text } : part
  })
}
