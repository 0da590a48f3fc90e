import type { JsonSchema } from '@svc/core'
import type { Json } from '@svc/core/contracts'

type Facts = { readonly [key: string]: Json | undefined }

/** A tool in this service's own form, as its document has it; what the protocol knows besides is kept under the service's names. */
export interface ToolSchema {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly result?: JsonSchema
  readonly annotations?: Facts
}

/** A tool in the protocol's form. */
export interface McpToolSchema {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly outputSchema?: JsonSchema
  readonly annotations?: Facts
}

/** To the protocol's form: `toMcpSchema({ name: 'now', description: 'The time.', parameters: { type: 'object' } }).inputSchema`. Schemas pass untouched. */
export const toMcpSchema = ({ parameters, result, ...rest }: ToolSchema): McpToolSchema => ({
  ...rest,
  inputSchema: parameters,
  ...(result === undefined ? {} : { outputSchema: result }),
})

/** From the protocol's form; the inverse: `fromMcpSchema(toMcpSchema(tool))` equals `tool`. */
export const fromMcpSchema = ({ inputSchema, outputSchema, ...rest }: McpToolSchema): ToolSchema => ({
  ...rest,
  parameters: inputSchema,
  ...(outputSchema === undefined ? {} : { result: outputSchema }),
})
