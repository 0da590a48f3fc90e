import { type Config, codeOf, get, messageOf, type RunningHost, svcError, type SvcError, systemUse, within } from '@svc/core'
import { type ContentPart, type Json, type Tool, type ToolResult, Tools } from '@svc/core/contracts'
import { startOwnHost } from './catalog-local.ts'
import { toolUnknownHere } from './errors.ts'
import { abortOnInterrupt, INTERRUPTED } from './interrupt.ts'
import { printError } from './command/report-error.ts'
import { oneLine, visible } from './command/text.ts'
import { checkArguments, Pairs, readArguments, type ToolArguments } from './tool-arguments.ts'

export interface CallAsked {
  readonly name: string
  readonly words: readonly string[]
  readonly args?: string | undefined
  readonly timeoutMs?: number | undefined
  readonly config?: string | undefined
  readonly debug: boolean
  readonly json: boolean
}

/** What `chat.tool_timeout_ms` is unless the configuration says otherwise. */
const TIMEOUT_MS = 60_000
/** A tool that was given up may hold the process: it ends all the same. */
const GRACE_MS = 1_000

/** `svc tools call`; resolves with the exit code: 1 when the tool fails, 130 when it was interrupted. Throws what is wrong before it runs. */
export async function callTool(asked: CallAsked): Promise<number> {
  const given = await readArguments(asked.words, asked.args)
  using interrupt = abortOnInterrupt()
  await using inner = await startOwnHost({
    ...(asked.config === undefined ? {} : { config: asked.config }),
    debug: asked.debug,
  })
  const tool = toolOf(inner.host, asked.name)
  const args = given instanceof Pairs ? given.fit(tool.parameters) : given
  await checkArguments(asked.name, tool, args)
  const began = performance.now()
  const limitMs = asked.timeoutMs ?? tool.timeoutMs ?? timeoutOf(inner.config)
  const outcome = await run(asked.name, tool, args, limitMs, interrupt.signal)
  const code = show(asked, outcome, Math.round(performance.now() - began))
  if ('error' in outcome) setTimeout(() => process.exit(code), GRACE_MS).unref()
  return interrupt.signal.aborted ? INTERRUPTED : code
}

function toolOf(host: RunningHost, name: string): Tool {
  const tools = host.slot(Tools)
  const tool = tools.get(name)
  if (!tool) throw toolUnknownHere(name, tools.names())
  return tool
}

type Outcome = { readonly result: ToolResult } | { readonly error: SvcError }

const timeoutOf = (config: Config) => {
  const ms = get(config.value, ['chat', 'tool_timeout_ms'])
  return typeof ms === 'number' ? ms : TIMEOUT_MS
}

async function run(name: string, tool: Tool, args: ToolArguments, limitMs: number, signal: AbortSignal): Promise<Outcome> {
  const late = () => tookTooLong(name, limitMs)
  try {
    const call = (ending: AbortSignal) => tool.call(args, systemUse(ending, 'svc tools call'))
    const result = resultOf(await within(limitMs, call, { signal, late }))
    return result.isError === true ? { error: failed(name, textOf(result), result.content) } : { result }
  } catch (error) {
    if (signal.aborted) return { error: svcError('INTERRUPTED', 'interrupted', { details: { tool: name } }) }
    return { error: isLate(error) ? error : failed(name, messageOf(error), [], mendOf(error)) }
  }
}

const tookTooLong = (tool: string, ms: number) =>
  svcError('TIMEOUT', `${tool} took longer than ${ms} ms`, {
    details: { tool },
    mend: 'give it longer with --timeout <seconds>',
  })
const isLate = (error: unknown): error is SvcError => codeOf(error) === 'TIMEOUT'

const mendOf = (error: unknown): string | undefined => {
  const { mend } = Object(error) as { mend?: unknown }
  return typeof mend === 'string' ? mend : undefined
}

const failed = (tool: string, reason: string, content: readonly ContentPart[], mend?: string) =>
  svcError('TOOL_EXECUTION_FAILED', `${tool}: ${reason || 'it does not say why'}`, {
    details: { tool, reason, content },
    ...(mend === undefined ? {} : { mend }),
  })

/** A tool is somebody's code. */
function resultOf(result: ToolResult | undefined): ToolResult {
  if (!Array.isArray(result?.content)) throw new TypeError('it did not answer { content: [{ type: "text", text }] }')
  return result
}

/** The result in the form of `POST /tools/{name}/call`, or as a person reads it. */
function show({ name, json }: CallAsked, outcome: Outcome, ms: number): number {
  if ('error' in outcome) {
    const { code, message, details } = outcome.error
    if (json) print(JSON.stringify({ success: false, error: message, error_code: code, details, duration_ms: ms }))
    else printError(outcome.error)
    return 1
  }
  const { content, structured } = outcome.result
  if (json) print(JSON.stringify(recordOf(name, outcome.result, ms)))
  else print(content.length === 0 && structured !== undefined ? JSON.stringify(structured, null, 2) : textOf(outcome.result))
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
const print = (text: string) =>
  void process.stdout.write(`${process.stdout.isTTY ? text.split('\n').map(visible).join('\n') : text}\n`)

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
