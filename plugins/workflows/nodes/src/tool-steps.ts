import { type CallContext, withTimeout } from '@svc/core'
import type { NodeStep, Tool, ToolResult, ToolStep } from '@svc/core/contracts'

type Arguments = Parameters<Tool['call']>[0]

/** Calls a tool within its own time limit; one that tells its steps is asked for them. */
export async function* stepsOf(tool: Tool, args: Arguments, ctx: CallContext): AsyncGenerator<NodeStep, ToolResult> {
  if (tool.run) return yield* told(tool.run.bind(tool), tool.timeoutMs, args, ctx)
  if (tool.timeoutMs === undefined) return tool.call(args, ctx)
  return withTimeout(tool.timeoutMs, signal => tool.call(args, { ...ctx, signal }), ctx)
}

async function* told(
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
      if (step.type === 'input') throw new Error('it asks for input, which a workflow cannot give: ask with a human node before')
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
