import { createHash } from 'node:crypto'
import { type JsonSchema, matchesPattern } from '@svc/core'
import type { Json, McpToolUi } from '@svc/core/contracts'

type Annotations = { readonly [key: string]: Json | undefined }

/** A tool in the form of this service, with the field names of its HTTP API. */
export interface ToolSchema {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly result?: JsonSchema
  readonly annotations?: Annotations
  readonly ui?: McpToolUi
}

/** A tool in the form of the protocol. */
export interface McpToolSchema {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly outputSchema?: JsonSchema
  readonly annotations?: Annotations
  readonly ui?: McpToolUi
}

/** Converts a tool to the form of the protocol. The schemas stay unchanged. */
export const toMcpSchema = ({ parameters, result, ...rest }: ToolSchema): McpToolSchema => ({
  ...rest,
  inputSchema: parameters,
  ...(result === undefined ? {} : { outputSchema: result }),
})

/** Converts a tool from the form of the protocol: `fromMcpSchema(toMcpSchema(tool))` equals `tool`. */
export const fromMcpSchema = ({ inputSchema, outputSchema, ...rest }: McpToolSchema): ToolSchema => ({
  ...rest,
  parameters: inputSchema,
  ...(outputSchema === undefined ? {} : { result: outputSchema }),
})

/** The APIs of model providers accept at most 64 characters in the name of a tool. */
const MAX_LENGTH = 64
const HASH_LENGTH = 8
const FOREIGN = /[^A-Za-z0-9_-]/g

/**
 * Returns the name of a server's tool in this service: `bridgedName('files', 'read_file')` is `files__read_file`. It has at most 64 letters, digits, `_` and `-`.
 * A name in which characters were replaced or cut ends in a hash of the original, so that names stay distinct.
 */
export function bridgedName(server: string, tool: string): string {
  const plain = `${server}__${tool}`
  const clean = plain.replace(FOREIGN, '_')
  if (clean === plain && plain.length <= MAX_LENGTH) return plain
  const hash = createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, HASH_LENGTH)
  return `${clean.slice(0, MAX_LENGTH - HASH_LENGTH - 1)}_${hash}`
}

/** Returns a function that matches the name of a tool against patterns in which `*` stands for any characters. */
export const toolMatcher =
  (patterns: readonly string[]) =>
  (name: string): boolean =>
    patterns.some(pattern => matchesPattern(pattern, name))
