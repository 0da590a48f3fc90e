import { lineInvalid } from '@svc/plugin-kit'
import { readFile } from 'node:fs/promises'
import { messageOf } from '@svc/core'
import type { Json, Question, WorkflowDefinition } from '@svc/core/contracts'

const RUN = 'workflows run <workflow> [--input <json>] [--param <name>=<value>]...'

/** The input as the command line has it: JSON, or `@` and the file that has it. Throws COMMAND_LINE_INVALID. */
export async function inputOf(given: string | undefined): Promise<Json> {
  if (given === undefined) return {}
  try {
    return JSON.parse(given.startsWith('@') ? await readFile(given.slice(1), 'utf8') : given) as Json
  } catch (error) {
    throw lineInvalid(`--input cannot be read as JSON: ${messageOf(error)}`, RUN)
  }
}

/** Parameters as `name=value`: text where the definition wants text, else JSON where it is JSON. Throws COMMAND_LINE_INVALID. */
export function parametersOf(given: readonly string[], { parameters = {} }: WorkflowDefinition): Json {
  const pairs = given.map(pair => {
    const at = pair.indexOf('=')
    if (at < 1) throw lineInvalid(`--param is <name>=<value>, was "${pair}"`, RUN)
    const name = pair.slice(0, at)
    return [name, jsonOr(pair.slice(at + 1), parameters[name])] as const
  })
  return Object.fromEntries(pairs)
}

const wantsText = (schema: unknown) =>
  typeof schema === 'object' && schema !== null && 'type' in schema && schema.type === 'string'

function jsonOr(text: string, schema: unknown): Json {
  if (wantsText(schema)) return text
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}

const YES = /^(y|yes|true|approved)$/i
const NO = /^(n|no|false|rejected)$/i

/** What a person typed, as an answer; undefined where it is none. A choice may be told by its number. */
export function answerOf({ kind, choices = [], schema }: Question, typed: string): Json | undefined {
  const text = typed.trim()
  if (kind === 'approval') return YES.test(text) ? true : NO.test(text) ? false : undefined
  if (kind === 'choice') return choices.includes(text) ? text : choices[Number(text) - 1]
  return text === '' && !wantsText(schema) ? undefined : jsonOr(text, schema ?? { type: 'string' })
}

/** What may be answered, in few words. */
export function answersTo({ kind, choices = [] }: Question): string {
  if (kind === 'approval') return '[y]es / [n]o'
  return kind === 'choice' ? choices.map((choice, at) => `[${at + 1}] ${choice}`).join(' / ') : 'your answer'
}
