import { type CallContext, type Log, type SchemaProblem, messageOf, type SlotView, withTimeout } from '@svc/core'
import type { Json, NodeStep, NodeTask, Tool, ToolResult, ToolStep, WorkflowNode } from '@svc/core/contracts'
import { logToolFailure, objectOf } from '@svc/plugin-kit'
import { type ParametersCheck, toolSchema } from '@svc/plugin-kit/tool-schema'
import { interrupted, invalid, noCallsLeft, toolDenied, toolFailed, toolUnknown } from './errors.ts'

type Arguments = Parameters<Tool['call']>[0]

const SETTINGS = objectOf(
  {
    name: { type: 'string', minLength: 1, description: 'Name of the tool' },
    arguments: { type: 'object', default: {}, description: 'Arguments of the call' },
  },
  ['arguments']
)

/** Creates the node type `tool`, which calls a tool. */
export const createTool = (tools: SlotView<Tool>, log: Log): WorkflowNode => ({
  description: 'Calls a tool. Returns its data, else its text. If the tool needs approval for each call, a person is asked.',
  settings: SETTINGS,
  repeatable: 'itself',
  names: { name: 'tool' },
  calledWith: { arguments: 'name' },
  async *run(task, ctx) {
    const name = task.settings.name as string
    const tool = tools.get(name)
    // tools of certain modes are only for models
    if (!tool || tool.modes) throw toolUnknown(name)
    if (task.interrupted && !isReading(tool)) throw interrupted(task.node, `the tool "${name}" may have done its work`)
    const args = await checked(tool, task.settings.arguments)
    if (tool.asks && !task.woken) return yield questionOf(name, args)
    if (task.woken && !('data' in task.woken && task.woken.data === true)) throw toolDenied(name)
    if (task.allowance.tool_calls === 0) throw noCallsLeft(task.node)
    if (tool.workplace) yield { type: 'workplace' }
    yield { type: 'spent', tool_calls: 1 }
    yield {
      type: 'output',
      output: outputOf(name, yield* called({ name, tool, plugin: tools.owner(name), log }, args, task, ctx)),
    }
  },
})

const SHOWN = 1_000

function questionOf(name: string, args: Arguments): NodeStep {
  const json = JSON.stringify(args)
  const shown = json.length > SHOWN ? `${json.slice(0, SHOWN)}…` : json
  return { type: 'wait', ask: { kind: 'approval', message: `Allow the tool "${name}" to run with ${shown}?` } }
}

const checks = new WeakMap<Tool, Promise<ParametersCheck>>()
const MAX_REPORTED = 10

/** The arguments with their defaults. Throws INVALID_VALUE. */
async function checked(tool: Tool, given: Json = {}): Promise<Arguments> {
  const args = structuredClone(given) as Arguments
  const check = checks.get(tool) ?? toolSchema(tool.parameters)
  checks.set(tool, check)
  const problems = (await check).check(args)
  if (problems.length > 0) throw invalid('arguments', `are invalid: ${problems.slice(0, MAX_REPORTED).map(words).join('; ')}`)
  return args
}

const words = (problem: SchemaProblem) => `${(problem.path || 'the whole').slice(0, 200)} ${problem.message.slice(0, 500)}`

interface CalledTool {
  readonly name: string
  readonly tool: Tool
  /** The plugin that added the tool. */
  readonly plugin: string | undefined
  readonly log: Log
}

/** Calls a tool and yields its progress. Throws TOOL_EXECUTION_FAILED. */
async function* called(
  { name, tool, plugin, log }: CalledTool,
  args: Arguments,
  { idempotencyKey }: NodeTask,
  ctx: CallContext
): AsyncGenerator<NodeStep, ToolResult> {
  try {
    return yield* stepsOf(tool, args, { ...ctx, idempotencyKey })
  } catch (error) {
    ctx.signal.throwIfAborted()
    logToolFailure(log, name, { thrown: error, plugin, requestId: ctx.requestId })
    throw toolFailed(name, messageOf(error), error)
  }
}

function outputOf(name: string, result: ToolResult): Json {
  if (!Array.isArray(result?.content)) throw toolFailed(name, 'it did not return { content: [{ type: "text", text }] }')
  const text = result.content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')
  if (result.isError) throw toolFailed(name, text || 'it gave no reason')
  if (result.structured !== undefined) return result.structured
  return result.content.every(({ type }) => type === 'text') ? text : (result.content as unknown as Json)
}

/** Whether a tool only reads, so that a repeated call does no harm. */
export const isReading = (tool: Tool | undefined): boolean => tool?.effects.every(effect => effect === 'read') === true

/** Calls a tool with its own time limit, and yields its progress if it reports any. */
async function* stepsOf(tool: Tool, args: Arguments, ctx: CallContext): AsyncGenerator<NodeStep, ToolResult> {
  if (tool.run) return yield* runSteps(tool.run.bind(tool), tool.timeoutMs, args, ctx)
  if (tool.timeoutMs === undefined) return tool.call(args, ctx)
  return withTimeout(tool.timeoutMs, signal => tool.call(args, { ...ctx, signal }), ctx)
}

async function* runSteps(
  run: NonNullable<Tool['run']>,
  ms: number | undefined,
  args: Arguments,
  ctx: CallContext
): AsyncGenerator<NodeStep, ToolResult> {
  const ending = new AbortController()
  const late = () => ending.abort(new Error(`it did not end within ${ms} ms`))
  const timer = ms === undefined ? undefined : setTimeout(late, ms)
  const signal = AbortSignal.any([ctx.signal, ending.signal])
  try {
    for await (const step of run(args, { can: [] }, { ...ctx, signal })) {
      if (step.type === 'result') return step.result
      if (step.type === 'input') throw new Error('it asks for input, which a workflow cannot give; ask with a human node before')
      if (step.type === 'progress') yield progressOf(step)
    }
  } finally {
    clearTimeout(timer)
  }
  throw new Error('it ended without a result')
}

const progressOf = ({ progress, total, message }: Extract<ToolStep, { readonly type: 'progress' }>): NodeStep => ({
  type: 'progress',
  ...(message === undefined ? {} : { message }),
  ...(total === undefined || !(total > 0) ? {} : { fraction: Math.min(1, Math.max(0, progress / total)) }),
})
