import { asSvcError, codeOf, type RuntimeModule, type SvcError, type CallContext, type RuntimeItem } from '@svc/core'
import {
  type Json,
  type Script,
  type ScriptLimits,
  type ScriptResult,
  type ScriptSandbox,
  type Effect,
  type Tool,
  type ToolResult,
  Tools,
} from '@svc/core/contracts'
import { callTimedOut, guestFailed, inputTooLarge, limitInvalid, exportsInvalid, itemInvalid, slotUnknown } from './errors.ts'
import { type GuestTask, MOST_CHARACTERS, type GuestOutcome } from './messages.ts'
import type { RequestHandler, Pool } from './pool.ts'
import { LEAST_BYTES } from './settings.ts'

/** Upper limits of every run. */
interface SandboxBounds {
  readonly timeoutMs: number
  readonly memoryBytes: number
}

export interface ScriptSandboxOptions {
  readonly pool: Pool
  readonly bounds: SandboxBounds
  readonly handlerFor: (grants: Pick<ScriptLimits, 'network' | 'paths'>) => RequestHandler
}

type Work = Pick<GuestTask, 'code' | 'what' | 'tenant'> & { readonly input: unknown; readonly limits: ScriptLimits }

/** Creates the sandbox for scripts and for plugins of plain JavaScript. */
export function createSandbox(options: ScriptSandboxOptions): ScriptSandbox {
  return {
    async run({ code, input = null, tenant, limits = {} }: Script, ctx): Promise<ScriptResult> {
      const owner = `tenant ${tenant ?? ctx.principal.id}`
      const { json, lines } = await perform(options, { code, what: 'script', tenant: owner, input, limits }, ctx)
      return { value: JSON.parse(json) as Json, console: lines as ScriptResult['console'] }
    },
    async open(module, ctx) {
      const { json } = await perform(options, { ...workOf(module, ctx), what: 'describe', input: null }, ctx)
      return contributionsOf(module, JSON.parse(json))
    },
    async call(module, { slot, name, method, args }, ctx) {
      const input = [...args, { config: module.config, requestId: ctx.requestId }]
      const work = { ...workOf(module, ctx), what: [slot, name, method], input }
      const { json } = await perform(options, work, ctx).catch((error: SvcError) => {
        throw error.code === 'SANDBOX_TIMEOUT' ? callTimedOut(error) : error
      })
      return resultOf(JSON.parse(json))
    },
  }
}

// principals do not share the engine of a plugin: the plugin could keep their data there
const workOf = ({ plugin, code, permissions }: RuntimeModule, ctx: CallContext) => ({
  code,
  tenant: `plugin ${plugin} ${ctx.principal.id}`,
  limits: { network: permissions.network ?? [] },
})

async function perform(
  { pool, bounds, handlerFor }: ScriptSandboxOptions,
  work: Work,
  ctx: CallContext
): Promise<GuestOutcome & { json: string }> {
  const { limits } = work
  const job: GuestTask = {
    code: work.code,
    what: work.what,
    tenant: work.tenant,
    input: packed(work),
    timeoutMs: timeoutOf(limits, bounds, ctx),
    memoryBytes: memoryOf(limits, bounds),
    fetch: (limits.network ?? []).length > 0,
    files: (limits.paths ?? []).length > 0,
  }
  const outcome = await pool.run(job, handlerFor(limits), ctx).catch((error: unknown) => {
    throw codeOf(error) === undefined ? asSvcError(error, 'SANDBOX_FAILED') : error
  })
  if (outcome.failure) throw guestFailed(outcome.failure)
  return outcome
}

function packed({ code, input }: Work): string {
  const json = JSON.stringify(input)
  if (code.length > MOST_CHARACTERS) throw inputTooLarge('code', MOST_CHARACTERS)
  if (json.length > MOST_CHARACTERS) throw inputTooLarge('input', MOST_CHARACTERS)
  return json
}

function timeoutOf(
  { timeoutMs = Number.POSITIVE_INFINITY }: ScriptLimits,
  bounds: SandboxBounds,
  { deadline }: CallContext
): number {
  if (!(timeoutMs > 0)) throw limitInvalid('limits.timeoutMs', 'must be above 0')
  const left = deadline === undefined ? timeoutMs : Math.max(1, deadline - Date.now())
  return Math.min(timeoutMs, left, bounds.timeoutMs)
}

function memoryOf({ memoryBytes = Number.POSITIVE_INFINITY }: ScriptLimits, bounds: SandboxBounds): number {
  if (!(memoryBytes >= LEAST_BYTES)) throw limitInvalid('limits.memoryBytes', `must be at least ${LEAST_BYTES}`)
  return Math.min(memoryBytes, bounds.memoryBytes)
}

/** An export of a module, as the engine reports it. It is untrusted. */
interface Exported {
  readonly slot: string
  readonly name: string
  readonly data: Readonly<Record<string, unknown>>
  readonly methods: readonly unknown[]
}

/** The slots that plugins in the sandbox can add to. Their items are transferred as JSON. */
const SLOTS = { tools: Tools } as const

/** Reads the exports of a module. Throws RUNTIME_SLOT, RUNTIME_ITEM, RUNTIME_EXPORTS. */
function contributionsOf({ plugin, permissions }: RuntimeModule, exported: unknown): readonly RuntimeItem[] {
  if (!Array.isArray(exported) || !exported.every(isExported)) throw exportsInvalid(plugin)
  return exported.map(({ slot, name, data, methods }) => {
    if (!Object.hasOwn(SLOTS, slot)) throw slotUnknown(plugin, slot, Object.keys(SLOTS))
    const problem = problemIn(data, methods)
    if (problem !== undefined) throw itemInvalid(plugin, `${slot}.${name}`, problem)
    const tool = { category: plugin, ...pick(data), effects: effectsOf(data, permissions) }
    return { slot: SLOTS[slot as keyof typeof SLOTS], name, data: tool, methods: ['call'] }
  })
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown) => typeof value === 'string'

/** The engine runs code of the module while it builds this value, so its shape is checked. */
function isExported(value: unknown): value is Exported {
  const { slot, name, data, methods } = Object(value) as Record<string, unknown>
  return isText(slot) && isText(name) && isObject(data) && Array.isArray(methods)
}

const EFFECTS: readonly unknown[] = ['read', 'write', 'execute', 'network'] satisfies Tool['effects']

/** The data fields of a tool: a check for each, and the message if it fails. All but three are optional. */
const TOOL_FIELDS: Readonly<Record<string, readonly [is: (value: unknown) => boolean, problem: string]>> = {
  description: [isText, 'which has no "description"'],
  effects: [all => Array.isArray(all) && all.every(item => EFFECTS.includes(item)), 'whose "effects" are not a list of effects'],
  parameters: [isObject, 'whose "parameters" are not a JSON Schema'],
  result: [isObject, 'whose "result" is not a JSON Schema'],
  title: [isText, 'whose "title" is not a string'],
  category: [isText, 'whose "category" is not a string'],
  asks: [value => typeof value === 'boolean', 'whose "asks" is neither true nor false'],
  timeoutMs: [value => Number.isInteger(value) && Number(value) > 0, 'whose "timeoutMs" is not an integer above 0'],
}
const NEEDED = ['description', 'effects', 'parameters']

/** Returns the problem of a tool, if it has one. */
function problemIn(data: Exported['data'], methods: readonly unknown[]): string | undefined {
  if (!methods.includes('call')) return 'which has no function "call"'
  const wrong = Object.entries(TOOL_FIELDS).find(
    ([name, [is]]) => (NEEDED.includes(name) || data[name] !== undefined) && !is(data[name])
  )
  return wrong?.[1][1]
}

/** Drops unknown fields. */
const pick = (data: Exported['data']) =>
  Object.fromEntries(Object.entries(data).filter(([name]) => Object.hasOwn(TOOL_FIELDS, name)))

/** Adds the effect `network` to a tool that can fetch, even if the tool does not declare it: modes allow and deny by effects. */
function effectsOf({ effects }: Exported['data'], { network = [] }: RuntimeModule['permissions']): readonly Effect[] {
  return [...new Set([...(effects as Effect[]), ...(network.length > 0 ? (['network'] as const) : [])])]
}

/** Turns the value of a call into a tool result, with the value as structured data. */
function resultOf(value: unknown): ToolResult {
  if (isResult(value)) return value
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return {
    content: [{ type: 'text', text }],
    ...(typeof value === 'string' ? {} : { structured: value as ToolResult['structured'] & {} }),
  }
}

/** The string fields that each type of content needs. */
const CONTENT: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  image: ['data', 'mimeType'],
  audio: ['data', 'mimeType'],
  resource_link: ['uri', 'name'],
}

function isContent(part: unknown): boolean {
  const members = Object(part) as Record<string, unknown>
  return (
    Object.hasOwn(CONTENT, String(members.type)) &&
    CONTENT[String(members.type)]!.every(name => typeof members[name] === 'string')
  )
}

const isResult = (value: unknown): value is ToolResult => {
  const { content, isError } = Object(value) as Record<string, unknown>
  return Array.isArray(content) && content.every(isContent) && (isError === undefined || typeof isError === 'boolean')
}
