import { createHash } from 'node:crypto'
import type { JsonSchema } from '@svc/core'
import type { Json, OpenRequest, ToolSpec } from '@svc/core/contracts'
import { invalidParam, unsupportedParam } from '../errors.ts'
import { addName, booleanIn, isSet, type Leftovers, listIn, objectIn, textIn, type Wire, wordIn } from '../fields.ts'

/** A tool as the client knows it. */
export interface ClientTool {
  readonly name: string
  /** The group of tools that it is in. */
  readonly namespace?: string
  /** The input of a custom tool is a text, not JSON. */
  readonly isCustom: boolean
}

/** The tools of a request. Models get a flat list of functions. */
export interface ClientTools {
  readonly specs: readonly ToolSpec[]
  /** By the name that the model gets. */
  readonly byName: ReadonlyMap<string, ClientTool>
  /** For the response: without the tools that svc leaves out. */
  readonly wire: readonly Json[]
}

const MOST_TOOLS = 1_024
const LONGEST_NAME = 128
/** The longest name that all servers of models take. */
const LONGEST_FLAT = 64

/** The name of a tool of a namespace, for the model. The same for the same tool. */
export function flatName(namespace: string | undefined, name: string): string {
  if (namespace === undefined) return name
  const flat = `${namespace}__${name}`
  if (flat.length <= LONGEST_FLAT && /^[\w-]+$/.test(flat)) return flat
  const digest = createHash('sha256')
    .update(JSON.stringify([namespace, name]))
    .digest('hex')
    .slice(0, 12)
  return `${flat.replaceAll(/[^\w-]/g, '_').slice(0, LONGEST_FLAT - digest.length - 1)}_${digest}`
}

interface Reading {
  readonly leftovers: Leftovers
  readonly specs: ToolSpec[]
  readonly byName: Map<string, ClientTool>
  readonly wire: Json[]
}

/** Reads the tools. Types that svc cannot run are left out and listed as dropped. Throws INVALID_VALUE. */
export function readTools(value: Json | undefined, leftovers: Leftovers): ClientTools {
  const reading: Reading = { leftovers, specs: [], byName: new Map(), wire: [] }
  const items = isSet(value) ? listIn(value, 'tools') : []
  if (items.length > MOST_TOOLS) throw tooMany()
  for (const [at, item] of items.entries()) readTool(objectIn(item, `tools[${at}]`), `tools[${at}]`, reading)
  if (reading.specs.length > MOST_TOOLS) throw tooMany()
  return reading
}

const tooMany = () => invalidParam('tools', `must have at most ${MOST_TOOLS} tools`, { limit: MOST_TOOLS })

function readTool(tool: Wire, param: string, reading: Reading): void {
  const type = textIn(tool.type, `${param}.type`)
  if (type === 'function' || type === 'custom') {
    reading.wire.push(addTool(tool, param, undefined, reading))
    return
  }
  if (type !== 'namespace') {
    addName(reading.leftovers.dropped, `tools.${type}`)
    return
  }
  const { name, description, tools } = tool
  const namespace = nameIn(name, `${param}.name`)
  const purpose = isSet(description) ? textIn(description, `${param}.description`) : ''
  for (const [at, nested] of listIn(tools, `${param}.tools`).entries()) {
    const place = `${param}.tools[${at}]`
    const inner = objectIn(nested, place)
    if (inner.type === 'function' || inner.type === 'custom') addTool(inner, place, { namespace, purpose }, reading)
    else addName(reading.leftovers.dropped, `tools.${textIn(inner.type, `${place}.type`)}`)
  }
  reading.wire.push(tool as Json)
}

interface Group {
  readonly namespace: string
  readonly purpose: string
}

/** Adds a function or custom tool. Returns it as the response shows it. */
function addTool(tool: Wire, param: string, group: Group | undefined, reading: Reading): Json {
  const name = nameIn(tool.name, `${param}.name`)
  const description = isSet(tool.description) ? textIn(tool.description, `${param}.description`) : null
  const isCustom = tool.type === 'custom'
  const flat = flatName(group?.namespace, name)
  if (reading.byName.has(flat)) throw invalidParam('tools', `must not have two tools of the name "${name}"`)
  reading.byName.set(flat, { name, isCustom, ...(group ? { namespace: group.namespace } : {}) })
  const text = [group?.purpose ?? '', description ?? ''].filter(part => part !== '').join('\n')
  if (isCustom) {
    noteRest(tool, CUSTOM_FIELDS, reading.leftovers)
    const format = isSet(tool.format) ? objectIn(tool.format, `${param}.format`) : undefined
    reading.specs.push({ name: flat, description: text + formatNote(format, `${param}.format`), parameters: CUSTOM_INPUT })
    return tool as Json
  }
  noteRest(tool, FUNCTION_FIELDS, reading.leftovers)
  const parameters = isSet(tool.parameters) ? objectIn(tool.parameters, `${param}.parameters`) : null
  const strict = isSet(tool.strict) ? booleanIn(tool.strict, `${param}.strict`) : null
  reading.specs.push({
    name: flat,
    description: text,
    parameters: (parameters ?? NO_PARAMETERS) as JsonSchema,
    ...(strict ? { strict: true } : {}),
  })
  return { type: 'function', name, description, parameters: parameters as Json, strict }
}

const FUNCTION_FIELDS: ReadonlySet<string> = new Set(['type', 'name', 'description', 'parameters', 'strict'])
const CUSTOM_FIELDS: ReadonlySet<string> = new Set(['type', 'name', 'description', 'format'])
const NO_PARAMETERS: JsonSchema = { type: 'object', properties: {} }
/** A model calls a custom tool as a function with one text. */
const CUSTOM_INPUT: JsonSchema = {
  type: 'object',
  properties: { input: { type: 'string', description: 'The input of the tool, as plain text' } },
  required: ['input'],
  additionalProperties: false,
}

function noteRest(tool: Wire, known: ReadonlySet<string>, { dropped }: Leftovers): void {
  // false is the value of options that are off
  for (const name in tool) if (!known.has(name) && isSet(tool[name]) && tool[name] !== false) addName(dropped, `tools.${name}`)
}

/** The grammar of an input, which only its own server can enforce, as a part of the description. */
function formatNote(format: Wire | undefined, param: string): string {
  if (!format || wordIn(format.type, `${param}.type`, ['text', 'grammar']) === 'text') return ''
  const syntax = textIn(format.syntax, `${param}.syntax`)
  return `\nThe input must match this ${syntax} grammar:\n${textIn(format.definition, `${param}.definition`)}`
}

function nameIn(value: Json | undefined, param: string): string {
  const name = textIn(value, param)
  if (name === '' || name.length > LONGEST_NAME) throw invalidParam(param, `must have 1 to ${LONGEST_NAME} characters`)
  return name
}

/** What `tool_choice` asks for. */
export interface ToolChoice {
  readonly choice?: OpenRequest['toolChoice']
  /** The tools that the model can call, if these are not all. */
  readonly specs: readonly ToolSpec[]
  readonly wire: Json
}

/** Reads `tool_choice`. Throws INVALID_VALUE, also for a tool that svc leaves out. */
export function readToolChoice(value: Json | undefined, tools: ClientTools, model: string): ToolChoice {
  const { specs } = tools
  if (!isSet(value)) return { specs, wire: 'auto' }
  if (typeof value === 'string') {
    const choice = wordIn(value, 'tool_choice', ['auto', 'none', 'required'])
    if (choice === 'required' && specs.length === 0) throw invalidParam('tool_choice', 'needs tools')
    return { specs, wire: choice, ...(choice === 'auto' || specs.length === 0 ? {} : { choice }) }
  }
  const asked = objectIn(value, 'tool_choice')
  if (asked.type !== 'allowed_tools')
    return { specs, wire: value, choice: { tool: toolNamed(asked, 'tool_choice', tools, model) } }
  const mode = wordIn(asked.mode, 'tool_choice.mode', ['auto', 'required'])
  const allowed = new Set(
    listIn(asked.tools, 'tool_choice.tools').map((tool, at) => {
      const place = `tool_choice.tools[${at}]`
      return toolNamed(objectIn(tool, place), place, tools, model)
    })
  )
  const some = specs.filter(({ name }) => allowed.has(name))
  if (mode === 'required' && some.length === 0) throw invalidParam('tool_choice', 'needs tools')
  return { specs: some, wire: value, ...(mode === 'required' ? { choice: mode } : {}) }
}

/** The name for the model of a tool that `tool_choice` names. */
function toolNamed({ type, name, namespace }: Wire, param: string, { byName }: ClientTools, model: string): string {
  if (type !== 'function' && type !== 'custom') throw unsupportedParam(`${param}.type`, model)
  const asked = textIn(name, `${param}.name`)
  const group = isSet(namespace) ? textIn(namespace, `${param}.namespace`) : undefined
  const flat = flatName(group, asked)
  if (byName.has(flat)) return flat
  throw invalidParam('tool_choice', `names "${asked.slice(0, 100)}", which is not one of the tools`)
}
