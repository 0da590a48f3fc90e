import { codeOf, type SchemaProblem, type Log, messageOf } from '@svc/core'
import type { Tool, ToolCallPart } from '@svc/core/contracts'
import { type ToolSchema, toolSchema } from '@svc/plugin-kit/tool-schema'
import { isWithin } from './tool-result.ts'

export type Arguments = ToolCallPart['arguments']

const checks = new WeakMap<Tool, Promise<ToolSchema>>()
/** Tools whose broken schema the log knows of. */
const broken = new WeakSet<Tool>()

const SMALL = 10_000
const TOLD = 10

/** What is wrong with the arguments of a call, in words for the model; `undefined` when they fit. */
export async function faultOf(name: string, tool: Tool, args: Arguments, log: Log): Promise<string | undefined> {
  try {
    const { check } = await checkOf(name, tool, log)
    // the check fills in defaults, and what is given to a tool is nobody's to change: so it is given a copy
    const faults = check(structuredClone(args), isWithin(args, SMALL) ? 'all' : 'first')
    if (faults.length === 0) return undefined
    return `The arguments do not fit: ${faults.slice(0, TOLD).map(words).join('; ')}. Fix them and call again.`
  } catch (error) {
    if (error instanceof RangeError) return 'The arguments are nested too deeply.'
    if (codeOf(error) === 'ARGUMENTS_TOO_LONG') return `The arguments do not fit: ${messageOf(error)}.`
    if (!broken.has(tool))
      log.error({ err: error, tool: name }, 'the parameters of a tool are no JSON Schema: it cannot be called')
    broken.add(tool)
    return `The tool "${name}" is broken and cannot be called: its parameters are no JSON Schema (${messageOf(error).slice(0, 200)}).`
  }
}

function checkOf(name: string, tool: Tool, log: Log): Promise<ToolSchema> {
  const check = checks.get(tool) ?? madeFor(name, tool, log)
  checks.set(tool, check)
  return check
}

async function madeFor(name: string, tool: Tool, log: Log): Promise<ToolSchema> {
  const made = await toolSchema(tool.parameters)
  const patterns = made.unchecked.slice(0, TOLD).map(pattern => pattern.slice(0, 200))
  if (patterns.length > 0) log.warn({ tool: name, patterns }, 'patterns in the parameters of a tool are not checked')
  return made
}

const words = (fault: SchemaProblem) => `${(fault.path || 'the whole').slice(0, 200)} ${fault.message.slice(0, 500)}`
