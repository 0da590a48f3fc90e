import { type Fault, type Log, messageOf, type Schema, schema } from '@svc/core'
import type { Tool, ToolCallPart } from '@svc/core/contracts'
import { isWithin } from './tool-result.ts'

export type Arguments = ToolCallPart['arguments']

interface Check {
  readonly all: Schema
  /** For large arguments: a list may hold a million faults. */
  readonly first: Schema
}
const checks = new WeakMap<Tool, Check>()
/** Tools whose broken schema the log knows of. */
const broken = new WeakSet<Tool>()

const SMALL = 10_000
const TOLD = 10

/** What is wrong with the arguments of a call, in words for the model; `undefined` when they fit. */
export function faultOf(name: string, tool: Tool, args: Arguments, log: Log): string | undefined {
  try {
    const faults = checkOf(tool, isWithin(args, SMALL) ? 'all' : 'first').check(structuredClone(args))
    if (faults.length === 0) return undefined
    return `The arguments do not fit: ${faults.slice(0, TOLD).map(words).join('; ')}. Mend them and call again.`
  } catch (error) {
    if (error instanceof RangeError) return 'The arguments are nested too deeply.'
    if (!broken.has(tool))
      log.error({ err: error, tool: name }, 'the parameters of a tool are no JSON Schema: it cannot be called')
    broken.add(tool)
    return `The tool "${name}" is broken and cannot be called: its parameters are no JSON Schema (${messageOf(error).slice(0, 200)}).`
  }
}

// the check fills in defaults, and what is given to a tool is nobody's to change: so it is given a copy
function checkOf(tool: Tool, faults: keyof Check): Schema {
  const check = checks.get(tool) ?? { all: schema(tool.parameters), first: schema(tool.parameters, { faults: 'first' }) }
  checks.set(tool, check)
  return check[faults]
}

const words = (fault: Fault) => `${(fault.path || 'the whole').slice(0, 200)} ${fault.message.slice(0, 500)}`
