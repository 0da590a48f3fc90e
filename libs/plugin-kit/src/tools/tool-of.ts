import type { CallContext } from '@svc/core'
import type { Tool, ToolResult } from '@svc/core/contracts'

/** A tool whose `call` names the type of its arguments. */
export interface TypedTool<A> extends Omit<Tool, 'call'> {
  call(args: A, ctx: CallContext): Promise<ToolResult>
}

/**
 * Makes a tool of one with typed arguments: `toolOf<{ readonly path: string }>({ …, async call({ path }, ctx) { … } })`. The type says what `parameters`
 * let through, by which the caller has checked them. An aborted call does not start.
 */
export const toolOf = <A extends object>(tool: TypedTool<A>): Tool => ({
  ...tool,
  async call(args, ctx) {
    ctx.signal.throwIfAborted()
    return tool.call(args as unknown as A, ctx)
  },
})

/** An answer: text for the model, by lines, and the same as data. */
export const answerOf = (text: string | readonly string[], structured?: ToolResult['structured']): ToolResult => ({
  content: [{ type: 'text', text: typeof text === 'string' ? text : text.join('\n') }],
  ...(structured === undefined ? {} : { structured }),
})

/** JSON Schema of an object with these properties and no others; all are required but those named in `optional`. */
export const objectOf = <P extends Readonly<Record<string, object>>>(
  properties: P,
  optional: readonly (keyof P & string)[] = []
) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
  additionalProperties: false,
})
