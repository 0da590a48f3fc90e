import {
  type Fields,
  type Losses,
  isFields,
  fieldInvalid,
  objectAt,
  listAt,
  textAt,
  toolsAt,
  nameAt,
  flagAt,
} from '@svc/api-types'
import type { Json, ModelRequest, ToolSpec } from '@svc/core/contracts'
import { cacheHintOf, given, kindAt } from './fields.ts'

type ToolFields = Pick<ModelRequest, 'tools' | 'toolChoice' | 'parallelToolCalls'>

/** Tools and tool choice of a request. Throws INVALID_VALUE. */
export function toolsOf(body: Fields, losses: Losses): ToolFields {
  const listed = given(body, 'tools')
  const tools: ToolSpec[] = []
  const hosted: string[] = []
  const seen = new Set<string>()
  for (const [at, item] of toolsAt(listed ?? [], 'tools').entries()) {
    const path = `tools.${at}`
    const tool = objectAt(item, path)
    if (isOwn(tool)) tools.push(ownTool(tool, path, seen, losses))
    else hosted.push(hostedTool(tool, path))
  }
  for (const name of hosted) losses.drop(`tools.${name}`)
  return { ...(tools.length > 0 ? { tools } : {}), ...choiceOf(body, { tools, hosted, losses }) }
}

/** A tool of the client has a schema, and no other type than `custom`. */
const isOwn = ({ type }: Fields) => type === undefined || type === null || type === 'custom'

const NAME = /^[\w-]{1,128}$/
const OWN = new Set(['type', 'name', 'description', 'input_schema', 'cache_control', 'strict'])

function ownTool(tool: Fields, path: string, seen: Set<string>, losses: Losses): ToolSpec {
  const name = textAt(tool.name, `${path}.name`)
  if (!NAME.test(name)) losses.refuse(`${path}.name`, 'must have 1 to 128 letters, digits, "_" or "-"')
  if (seen.has(name)) throw fieldInvalid(`${path}.name`, `must be unique, but "${name}" is the name of another tool`)
  seen.add(name)
  const parameters = objectAt(tool.input_schema, `${path}.input_schema`)
  if (parameters.type !== 'object') losses.refuse(`${path}.input_schema.type`, 'must be "object"')
  losses.dropUnknown(tool, OWN, 'tools')
  const strict = given(tool, 'strict')
  const description = given(tool, 'description')
  return {
    name,
    description: description === undefined ? '' : textAt(description, `${path}.description`),
    parameters,
    ...(strict === undefined ? {} : { strict: flagAt(strict, `${path}.strict`) }),
    ...cacheHintOf(tool, path, losses),
  }
}

/** A tool that the model or its server knows by its type, such as a web search. Returns its name. */
function hostedTool(tool: Fields, path: string): string {
  const type = nameAt(tool.type, `${path}.type`)
  const name = given(tool, 'name') ?? given(tool, 'mcp_server_name')
  return name === undefined ? type : nameAt(name, `${path}.name`)
}

interface Offered {
  readonly tools: readonly ToolSpec[]
  /** Names of tools that only the server of this API has. */
  readonly hosted: readonly string[]
  readonly losses: Losses
}

function choiceOf(body: Fields, offered: Offered): ToolFields {
  const value = given(body, 'tool_choice')
  if (value === undefined) return {}
  const choice = objectAt(value, 'tool_choice')
  const single = given(choice, 'disable_parallel_tool_use')
  const parallel =
    single !== undefined && flagAt(single, 'tool_choice.disable_parallel_tool_use') ? { parallelToolCalls: false } : {}
  offered.losses.dropUnknown(choice, CHOICE, 'tool_choice')
  const toolChoice = chosen(choice, offered)
  // without tools, nothing can be chosen
  return offered.tools.length === 0 ? {} : { ...parallel, ...(toolChoice === undefined ? {} : { toolChoice }) }
}

const CHOICE = new Set(['type', 'name', 'disable_parallel_tool_use'])

function chosen(choice: Fields, { tools, hosted, losses }: Offered): ModelRequest['toolChoice'] {
  switch (kindAt(choice, 'tool_choice')) {
    case 'auto':
      return undefined
    case 'none':
      return 'none'
    case 'any':
      if (tools.length + hosted.length === 0) throw fieldInvalid('tool_choice', 'is "any", but the request has no tools')
      if (tools.length === 0) losses.refuse('tool_choice', `is "any", but this model has no tool of ${hosted.join(', ')}`)
      return 'required'
    case 'tool': {
      const tool = nameAt(choice.name, 'tool_choice.name')
      if (tools.some(one => one.name === tool)) return { tool }
      if (!hosted.includes(tool)) throw fieldInvalid('tool_choice.name', `must be one of the tools, was "${tool}"`)
      losses.refuse('tool_choice.name', `names "${tool}", which this model does not have`)
      return undefined
    }
    default:
      losses.refuse('tool_choice.type', 'must be "auto", "any", "tool" or "none"')
      return undefined
  }
}

/** Servers of tools that the server of this API would call. */
export function checkServers(value: Json | undefined, losses: Losses): void {
  const servers = listAt(value, 'mcp_servers')
  const names = servers.map(server => (isFields(server) && typeof server.name === 'string' ? server.name.slice(0, 100) : '?'))
  if (names.length > 0) losses.refuse('mcp_servers', `cannot be used by this model: ${names.slice(0, 20).join(', ')}`)
}
