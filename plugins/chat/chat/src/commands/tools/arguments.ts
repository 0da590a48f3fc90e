import { codeOf, type SchemaProblem, isTree, messageOf } from '@svc/core'
import type { Json, Tool } from '@svc/core/contracts'
import { toolSchema } from '@svc/plugin-kit/tool-schema'
import { argumentsInvalid } from '../errors.ts'

export type ToolArguments = Readonly<Record<string, Json>>

/** The most that is read from the standard input. */
const MOST_BYTES = 4 * 1024 * 1024
const FORMS = `write '{"key": "value"}', key=value pairs, or --args - and the JSON on the standard input`

/**
 * Arguments as the command line has them: one JSON object, `key=value` pairs, or (`from`) JSON of the option, `-` for the standard input.
 * Throws TOOL_ARGUMENTS_INVALID.
 */
export async function readArguments(words: readonly string[], from: string | undefined): Promise<ToolArguments | Pairs> {
  if (from !== undefined && words.length > 0) throw argumentsInvalid('the arguments stand in --args and beside it', FORMS)
  if (from !== undefined) return objectOf(from === '-' ? await inputText() : from)
  const [first = ''] = words
  return words.length === 1 && first.trimStart().startsWith('{') ? objectOf(first) : new Pairs(words)
}

/** `key=value` pairs: what a value means depends on the tool's schema. */
export class Pairs {
  readonly #pairs: readonly (readonly [key: string, value: string])[]

  constructor(words: readonly string[]) {
    this.#pairs = words.map(pairOf)
    const keys = this.#pairs.map(([key]) => key)
    const twice = keys.find((key, at) => keys.indexOf(key) !== at)
    if (twice !== undefined) throw argumentsInvalid(`"${twice}" is given twice`, 'a list is one value: tags=["a","b"]')
  }

  /** Text where the schema wants text, else JSON where it is JSON. */
  fit(parameters: Tool['parameters']): ToolArguments {
    const properties = isTree(parameters) && isTree(parameters.properties) ? parameters.properties : {}
    const isText = (key: string) => {
      const one = Object.hasOwn(properties, key) ? properties[key] : undefined
      return isTree(one) && one.type === 'string'
    }
    return Object.fromEntries(this.#pairs.map(([key, value]) => [key, isText(key) ? value : jsonOr(value)]))
  }
}

function pairOf(word: string): readonly [string, string] {
  const at = word.indexOf('=')
  if (at < 1) throw argumentsInvalid(`"${word.slice(0, 80)}" is neither a JSON object nor key=value`, FORMS)
  return [word.slice(0, at), word.slice(at + 1)]
}

function jsonOr(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}

function objectOf(text: string): ToolArguments {
  let value: unknown
  try {
    value = JSON.parse(text.trim() === '' ? '{}' : text)
  } catch (error) {
    throw argumentsInvalid(`the arguments are no JSON: ${messageOf(error)}`, FORMS)
  }
  if (!isTree(value)) throw argumentsInvalid('the arguments must be a JSON object', FORMS)
  return value as ToolArguments
}

async function inputText(): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MOST_BYTES) throw argumentsInvalid(`the standard input has more than ${MOST_BYTES} bytes`, 'give the tool less')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Throws TOOL_ARGUMENTS_INVALID with every fault. */
export async function checkArguments(name: string, tool: Tool, args: ToolArguments): Promise<void> {
  const faults = await faultsOf(tool, args)
  if (faults.length === 0) return
  const words = faults.map(({ path, message }) => `${path || 'the arguments'} ${message}`)
  const near = faults.find(fault => fault.nearest !== undefined)?.nearest
  const hint = near === undefined ? '' : `did you mean "${near}"? `
  throw argumentsInvalid(words.join('\n'), `${hint}\`svc tools show ${name}\` tells what it takes`)
}

async function faultsOf(tool: Tool, args: ToolArguments): Promise<SchemaProblem[]> {
  const { check } = await toolSchema(tool.parameters)
  try {
    // the check fills in defaults, and what is given to a tool is nobody's to change
    return check(structuredClone(args))
  } catch (error) {
    if (codeOf(error) !== 'ARGUMENTS_TOO_LONG') throw error
    throw argumentsInvalid(messageOf(error), 'give it less')
  }
}
