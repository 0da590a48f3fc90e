import { errorPage, INTERRUPTED, oneLine, visibleLines } from '@svc/cli/command'
import { codeOf, type SchemaProblem, isTree, messageOf, svcError, type SvcError, systemContext, withTimeout } from '@svc/core'
import { type CommandContext, type ContentPart, type Json, type Tool, type ToolResult, Tools } from '@svc/core/contracts'
import { toolSchema } from '@svc/plugin-kit/tool-schema'
import { argumentsInvalid, toolUnknownHere } from '../errors.ts'

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
    hint: 'Set a longer time limit: --timeout <seconds>',
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

type ToolArguments = Readonly<Record<string, Json>>

/** The most that is read from the standard input. */
const MOST_BYTES = 4 * 1024 * 1024
const FORMS = `write '{"key": "value"}', key=value pairs, or --args - and the JSON on the standard input`

/**
 * Arguments as the command line has them: one JSON object, `key=value` pairs, or (`from`) JSON of the option, `-` for the standard input.
 * Throws TOOL_ARGUMENTS_INVALID.
 */
async function readArguments(words: readonly string[], from: string | undefined): Promise<ToolArguments | Pairs> {
  if (from !== undefined && words.length > 0) throw argumentsInvalid('the arguments stand in --args and beside it', FORMS)
  if (from !== undefined) return objectOf(from === '-' ? await inputText() : from)
  const [first = ''] = words
  return words.length === 1 && first.trimStart().startsWith('{') ? objectOf(first) : new Pairs(words)
}

/** `key=value` pairs: what a value means depends on the tool's schema. */
class Pairs {
  readonly #pairs: readonly (readonly [key: string, value: string])[]

  constructor(words: readonly string[]) {
    this.#pairs = words.map(pairOf)
    const keys = this.#pairs.map(([key]) => key)
    const twice = keys.find((key, at) => keys.indexOf(key) !== at)
    if (twice !== undefined) throw argumentsInvalid(`"${twice}" is given twice`, 'a list is one value: tags=["a","b"]')
  }

  /** Text where the schema wants text, else JSON where it is JSON. */
  fit(parameters: Tool['parameters']): ToolArguments {
    const properties = isTree(parameters) && isTree(parameters.properties) ? parameters.properties : {}
    const isText = (key: string) => {
      const one = Object.hasOwn(properties, key) ? properties[key] : undefined
      return isTree(one) && one.type === 'string'
    }
    return Object.fromEntries(this.#pairs.map(([key, value]) => [key, isText(key) ? value : jsonOr(value)]))
  }
}

function pairOf(word: string): readonly [string, string] {
  const at = word.indexOf('=')
  if (at < 1) throw argumentsInvalid(`"${word.slice(0, 80)}" is neither a JSON object nor key=value`, FORMS)
  return [word.slice(0, at), word.slice(at + 1)]
}

function jsonOr(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}

function objectOf(text: string): ToolArguments {
  let value: unknown
  try {
    value = JSON.parse(text.trim() === '' ? '{}' : text)
  } catch (error) {
    throw argumentsInvalid(`the arguments are no JSON: ${messageOf(error)}`, FORMS)
  }
  if (!isTree(value)) throw argumentsInvalid('the arguments must be a JSON object', FORMS)
  return value as ToolArguments
}

async function inputText(): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MOST_BYTES) throw argumentsInvalid(`the standard input has more than ${MOST_BYTES} bytes`, 'give the tool less')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Throws TOOL_ARGUMENTS_INVALID with every fault. */
async function checkArguments(name: string, tool: Tool, args: ToolArguments): Promise<void> {
  const faults = await faultsOf(tool, args)
  if (faults.length === 0) return
  const words = faults.map(({ path, message }) => `${path || 'the arguments'} ${message}`)
  const near = faults.find(fault => fault.nearest !== undefined)?.nearest
  const hint = near === undefined ? '' : `did you mean "${near}"? `
  throw argumentsInvalid(words.join('\n'), `${hint}\`svc tools show ${name}\` tells what it takes`)
}

async function faultsOf(tool: Tool, args: ToolArguments): Promise<SchemaProblem[]> {
  const { check } = await toolSchema(tool.parameters)
  try {
    // the check fills in defaults, but the arguments of a tool must not change
    return check(structuredClone(args))
  } catch (error) {
    if (codeOf(error) !== 'ARGUMENTS_TOO_LONG') throw error
    throw argumentsInvalid(messageOf(error), 'give it less')
  }
}
