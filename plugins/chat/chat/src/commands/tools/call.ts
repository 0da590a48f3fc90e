import { errorPage, INTERRUPTED, oneLine, UNSET_HINT, unsetIn, unsetText, visible, visibleLines } from '@svc/cli/command'
import {
  codeOf,
  type SchemaProblem,
  isTree,
  messageOf,
  type HostReport,
  svcError,
  type SvcError,
  systemContext,
  withTimeout,
} from '@svc/core'
import { type CommandContext, type ContentPart, type Json, type Tool, type ToolResult, Tools } from '@svc/core/contracts'
import { toolFailure } from '@svc/plugin-kit'
import { toolSchema } from '@svc/plugin-kit/tool-schema'
import { argumentsInvalid, toolUnknownHere } from '../errors.ts'

interface CallOptions {
  readonly name: string
  readonly words: readonly string[]
  readonly args?: string | undefined
  readonly timeoutMs?: number | undefined
  readonly debug: boolean
  readonly json: boolean
}

/** The default of `chat.tool_timeout_ms`. */
const TIMEOUT_MS = 60_000

/** `svc tools call`. Resolves with the exit code: 1 if the tool fails, 130 after an interrupt. Throws the errors that occur before the tool runs. */
export async function callTool(command: CommandContext, asked: CallOptions): Promise<number> {
  const given = await readArguments(asked.words, asked.args)
  const host = await command.host({ debug: asked.debug })
  const tools = host.slot(Tools)
  const tool = tools.get(asked.name)
  if (!tool) throw toolUnknownHere(asked.name, tools.names())
  const args = given instanceof Pairs ? given.fit(tool.parameters) : given
  await checkArguments(asked.name, tool, args)
  const began = performance.now()
  const limitMs = asked.timeoutMs ?? tool.timeoutMs ?? timeoutOf(await command.setting('chat', 'tool_timeout_ms'))
  const plugin = tools.owner(asked.name)
  const called = await run({ name: asked.name, tool, plugin }, args, limitMs, command.signal)
  const outcome = await withUnset(called, host.report(), plugin)
  const code = show(command, asked, outcome, Math.round(performance.now() - began))
  return command.signal.aborted ? INTERRUPTED : code
}

/** `frames`: the stack of an unexpected error. */
type Outcome = { readonly result: ToolResult } | { readonly error: SvcError; readonly frames?: readonly string[] }

interface CalledTool {
  readonly name: string
  readonly tool: Tool
  /** The plugin that added the tool. */
  readonly plugin: string | undefined
}

const timeoutOf = (ms: unknown) => (typeof ms === 'number' ? ms : TIMEOUT_MS)

async function run(called: CalledTool, args: ToolArguments, limitMs: number, signal: AbortSignal): Promise<Outcome> {
  const { name, tool } = called
  const late = () => tookTooLong(name, limitMs)
  try {
    const call = (ending: AbortSignal) => tool.call(args, systemContext(ending, 'svc tools call'))
    const result = resultOf(await withTimeout(limitMs, call, { signal, late }))
    return result.isError === true ? { error: failed(called, textOf(result), result.content) } : { result }
  } catch (error) {
    if (signal.aborted) return { error: svcError('INTERRUPTED', 'interrupted', { details: { tool: name } }) }
    return isLate(error) ? { error } : thrownBy(called, error)
  }
}

const MOST_FRAMES = 10

/** Shows where a tool failed, except for an error with a hint or of svc: its author expected it. */
function thrownBy({ name, plugin }: CalledTool, thrown: unknown): Outcome {
  const { code, err } = toolFailure(name, { thrown, plugin })
  const hint = hintOf(thrown)
  const error = svcError('TOOL_EXECUTION_FAILED', `${name}: ${messageWithCode(err.message, code)}`, {
    details: { tool: name, ...(plugin === undefined ? {} : { plugin }), reason: err.message, code, content: [] },
    ...(plugin === undefined ? {} : { plugin }),
    ...(hint === undefined ? {} : { hint }),
  })
  const isExpected = hint !== undefined || (plugin?.startsWith('@svc/') === true && code !== err.name)
  return { error, ...(isExpected ? {} : { frames: framesOf(err, plugin) }) }
}

/** A tool often fails because of a declared variable that is not set. */
async function withUnset(outcome: Outcome, { plugins }: HostReport, plugin: string | undefined): Promise<Outcome> {
  if (!('frames' in outcome) || plugin?.startsWith('@svc/') !== false) return outcome
  const { permissions = {} } = plugins.find(({ name }) => name === plugin) ?? {}
  const unset = unsetIn(permissions)
  if (unset.length === 0) return outcome
  const { code, message, details } = outcome.error
  const hint = `Of the variables of the plugin, ${unsetText(unset)}. ${UNSET_HINT}`
  return { ...outcome, error: svcError(code, message, { details, plugin, hint }) }
}

/** The frames of the plugin, without those of svc around it, and of its dependencies only if it has none itself. */
function framesOf({ stack = '' }: Error, plugin: string | undefined): string[] {
  const frames = stack.split('\n').flatMap(line => /^\s+(at .*)/.exec(line)?.[1] ?? [])
  const end = frames.findIndex(frame => /\/(core|@svc)\/runtime\//.test(frame))
  const all = end < 1 ? frames : frames.slice(0, end)
  const own = all.filter(frame => plugin === undefined || (packageIn(frame) ?? plugin) === plugin)
  return (own.length > 0 ? own : all).slice(0, MOST_FRAMES).map(frame => frame.replace(INSTALLED, ''))
}

/** The path of a file up to its package. */
const INSTALLED = /(?:file:\/\/)?[^\s()]*\/node_modules\//

/** The package of a frame; undefined for a file outside of node_modules, as those of a linked plugin. */
const packageIn = (frame: string): string | undefined => /^(@[^/]+\/)?[^/]+/.exec(frame.split(INSTALLED)[1] ?? '')?.[0]

/** INTERNAL_ERROR is the code of an error without one. */
const messageWithCode = (message: string, code: string) =>
  code === 'INTERNAL_ERROR' || message.includes(code) ? message : `${message} (${code})`

const tookTooLong = (tool: string, ms: number) =>
  svcError('TIMEOUT', `${tool} took longer than ${ms} ms`, {
    details: { tool },
    hint: 'Set a longer limit with --timeout <seconds>',
  })
const isLate = (error: unknown): error is SvcError => codeOf(error) === 'TIMEOUT'

/** A tool can throw an object whose getters throw. */
const hintOf = (error: unknown): string | undefined => {
  try {
    const { hint } = Object(error) as { hint?: unknown }
    return typeof hint === 'string' ? hint : undefined
  } catch {
    return undefined
  }
}

const failed = ({ name: tool, plugin }: CalledTool, reason: string, content: readonly ContentPart[]) =>
  svcError('TOOL_EXECUTION_FAILED', `${tool}: ${reason || 'failed without an error message'}`, {
    details: { tool, reason, content },
    ...(plugin === undefined ? {} : { plugin }),
  })

/** Checks the form of the result, because a tool is untrusted code. */
function resultOf(result: ToolResult | undefined): ToolResult {
  if (!Array.isArray(result?.content)) throw new TypeError('the tool did not return { content: [{ type: "text", text }] }')
  return result
}

/** Prints the result in the form of `POST /tools/{name}/call`, or as text. */
function show({ print, note }: CommandContext, { name, json }: CallOptions, outcome: Outcome, ms: number): number {
  if ('error' in outcome) {
    const { error, frames = [] } = outcome
    const { code, message, details } = error
    if (json) print(shown(JSON.stringify({ success: false, error: message, error_code: code, details, duration_ms: ms })))
    else note([errorPage(error), ...frames.map(line => `  ${visible(line)}`)].join('\n'))
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

/** Escapes control characters of the tool on a terminal. */
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
    default: // future content types of MCP
      return '[--json has its data]'
  }
}

const resourceText = ({ text, uri }: { readonly [key: string]: Json | undefined }) =>
  typeof text === 'string' ? text : `[resource ${oneLine(typeof uri === 'string' ? uri : '')}: --json has its data]`

type ToolArguments = Readonly<Record<string, Json>>

/** Maximum size of the standard input. */
const MOST_BYTES = 4 * 1024 * 1024
const FORMS = `Write '{"key": "value"}' or key=value pairs, or pass --args - and write JSON to the standard input`

/**
 * Reads the arguments: a JSON object, `key=value` pairs, or the JSON of --args (`from`). `-` stands for the standard input.
 * Throws TOOL_ARGUMENTS_INVALID.
 */
async function readArguments(words: readonly string[], from: string | undefined): Promise<ToolArguments | Pairs> {
  if (from !== undefined && words.length > 0)
    throw argumentsInvalid('the arguments are given both in --args and after the name', FORMS)
  if (from !== undefined) return objectOf(from === '-' ? await inputText() : from)
  const [first = ''] = words
  return words.length === 1 && first.trimStart().startsWith('{') ? objectOf(first) : new Pairs(words)
}

/** `key=value` pairs. The schema of the tool decides about the type of each value. */
class Pairs {
  readonly #pairs: readonly (readonly [key: string, value: string])[]

  constructor(words: readonly string[]) {
    this.#pairs = words.map(pairOf)
    const keys = this.#pairs.map(([key]) => key)
    const twice = keys.find((key, at) => keys.indexOf(key) !== at)
    if (twice !== undefined) throw argumentsInvalid(`"${twice}" is given twice`, 'Write a list as one value: tags=["a","b"]')
  }

  /** A value is a text if the schema requires a text; otherwise it is parsed as JSON if possible. */
  fit(parameters: Tool['parameters']): ToolArguments {
    const properties = isTree(parameters) && isTree(parameters.properties) ? parameters.properties : {}
    const isText = (key: string) => {
      const found = Object.hasOwn(properties, key) ? properties[key] : undefined
      return isTree(found) && found.type === 'string'
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
    throw argumentsInvalid(`the arguments are not valid JSON: ${messageOf(error)}`, FORMS)
  }
  if (!isTree(value)) throw argumentsInvalid('the arguments must be a JSON object', FORMS)
  return value as ToolArguments
}

async function inputText(): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MOST_BYTES) throw argumentsInvalid(`the standard input has more than ${MOST_BYTES} bytes`, 'Shorten the arguments')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Throws TOOL_ARGUMENTS_INVALID with all problems. */
async function checkArguments(name: string, tool: Tool, args: ToolArguments): Promise<void> {
  const problems = await problemsOf(tool, args)
  if (problems.length === 0) return
  const words = problems.map(({ path, message }) => `${path || 'the arguments'} ${message}`)
  const near = problems.find(problem => problem.nearest !== undefined)?.nearest
  const hint = near === undefined ? '' : `Did you mean "${near}"? `
  throw argumentsInvalid(words.join('\n'), `${hint}Run \`svc tools show ${name}\` to show its parameters`)
}

async function problemsOf(tool: Tool, args: ToolArguments): Promise<SchemaProblem[]> {
  const { check } = await toolSchema(tool.parameters)
  try {
    // the check fills in defaults; the arguments of the call must not change
    return check(structuredClone(args))
  } catch (error) {
    if (codeOf(error) !== 'ARGUMENTS_TOO_LONG') throw error
    throw argumentsInvalid(messageOf(error), 'Shorten the arguments')
  }
}
