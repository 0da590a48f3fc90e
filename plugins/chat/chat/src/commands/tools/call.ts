import { errorPage, INTERRUPTED, oneLine, visibleLines } from '@svc/cli/command'
import { codeOf, messageOf, svcError, type SvcError, systemContext, withTimeout } from '@svc/core'
import { type CommandContext, type ContentPart, type Json, type Tool, type ToolResult, Tools } from '@svc/core/contracts'
import { toolUnknownHere } from '../errors.ts'
import { checkArguments, Pairs, readArguments, type ToolArguments } from './arguments.ts'

interface CallAsked {
  readonly name: string
  readonly words: readonly string[]
  readonly args?: string | undefined
  readonly timeoutMs?: number | undefined
  readonly debug: boolean
  readonly json: boolean
}

/** What `chat.tool_timeout_ms` is unless the configuration says otherwise. */
const TIMEOUT_MS = 60_000

/** `svc tools call`; resolves with the exit code: 1 when the tool fails, 130 when it was interrupted. Throws what is wrong before it runs. */
export async function callTool(command: CommandContext, asked: CallAsked): Promise<number> {
  const given = await readArguments(asked.words, asked.args)
  const tools = (await command.host({ debug: asked.debug })).slot(Tools)
  const tool = tools.get(asked.name)
  if (!tool) throw toolUnknownHere(asked.name, tools.names())
  const args = given instanceof Pairs ? given.fit(tool.parameters) : given
  await checkArguments(asked.name, tool, args)
  const began = performance.now()
  const limitMs = asked.timeoutMs ?? tool.timeoutMs ?? timeoutOf(await command.setting('chat', 'tool_timeout_ms'))
  const outcome = await run(asked.name, tool, args, limitMs, command.signal)
  const code = show(command, asked, outcome, Math.round(performance.now() - began))
  return command.signal.aborted ? INTERRUPTED : code
}

type Outcome = { readonly result: ToolResult } | { readonly error: SvcError }

const timeoutOf = (ms: unknown) => (typeof ms === 'number' ? ms : TIMEOUT_MS)

async function run(name: string, tool: Tool, args: ToolArguments, limitMs: number, signal: AbortSignal): Promise<Outcome> {
  const late = () => tookTooLong(name, limitMs)
  try {
    const call = (ending: AbortSignal) => tool.call(args, systemContext(ending, 'svc tools call'))
    const result = resultOf(await withTimeout(limitMs, call, { signal, late }))
    return result.isError === true ? { error: failed(name, textOf(result), result.content) } : { result }
  } catch (error) {
    if (signal.aborted) return { error: svcError('INTERRUPTED', 'interrupted', { details: { tool: name } }) }
    return { error: isLate(error) ? error : failed(name, messageOf(error), [], hintOf(error)) }
  }
}

const tookTooLong = (tool: string, ms: number) =>
  svcError('TIMEOUT', `${tool} took longer than ${ms} ms`, {
    details: { tool },
    hint: 'give it longer with --timeout <seconds>',
  })
const isLate = (error: unknown): error is SvcError => codeOf(error) === 'TIMEOUT'

const hintOf = (error: unknown): string | undefined => {
  const { hint } = Object(error) as { hint?: unknown }
  return typeof hint === 'string' ? hint : undefined
}

const failed = (tool: string, reason: string, content: readonly ContentPart[], hint?: string) =>
  svcError('TOOL_EXECUTION_FAILED', `${tool}: ${reason || 'it does not say why'}`, {
    details: { tool, reason, content },
    ...(hint === undefined ? {} : { hint }),
  })

/** A tool is somebody's code. */
function resultOf(result: ToolResult | undefined): ToolResult {
  if (!Array.isArray(result?.content)) throw new TypeError('it did not answer { content: [{ type: "text", text }] }')
  return result
}

/** The result in the form of `POST /tools/{name}/call`, or as a person reads it. */
function show({ print, note }: CommandContext, { name, json }: CallAsked, outcome: Outcome, ms: number): number {
  if ('error' in outcome) {
    const { code, message, details } = outcome.error
    if (json) print(shown(JSON.stringify({ success: false, error: message, error_code: code, details, duration_ms: ms })))
    else note(errorPage(outcome.error))
    return 1
  }
  const { content, structured } = outcome.result
  if (json) print(shown(JSON.stringify(recordOf(name, outcome.result, ms))))
  else
    print(shown(content.length === 0 && structured !== undefined ? JSON.stringify(structured, null, 2) : textOf(outcome.result)))
  return 0
}

const recordOf = (tool: string, { content, structured }: ToolResult, ms: number) => ({
  success: true,
  tool,
  content,
  ...(structured === undefined ? {} : { structured_content: structured }),
  is_error: false,
  duration_ms: ms,
})

/** On a terminal nothing of what a tool says is obeyed. */
const shown = (text: string) => (process.stdout.isTTY ? visibleLines(text) : text)

const textOf = ({ content }: ToolResult) => content.map(partText).join('\n')

function partText(part: ContentPart): string {
  switch (part.type) {
    case 'text':
      return part.text
    case 'resource_link':
      return `[${oneLine(part.name)}: ${oneLine(part.uri)}]`
    case 'resource':
      return resourceText(part.resource)
    case 'image':
    case 'audio':
      return `[${part.type} ${oneLine(part.mimeType)}: --json has its data]`
    default: // the blocks of MCP may grow
      return '[--json has its data]'
  }
}

const resourceText = ({ text, uri }: { readonly [key: string]: Json | undefined }) =>
  typeof text === 'string' ? text : `[resource ${oneLine(typeof uri === 'string' ? uri : '')}: --json has its data]`
