import { readFile } from 'node:fs/promises'
import { Args, Flags } from '@svc/cli/command'
import { type CallContext, messageOf, systemContext } from '@svc/core'
import { type CommandContext, type Json, type Question, type WorkflowDefinition, Workflows } from '@svc/core/contracts'
import { lineInvalid, sharedStore } from '@svc/plugin-kit'

const RUN = 'workflows run <workflow> [--input <json>] [--param <name>=<value>]...'

/** Reads the input of the command line: JSON, or `@` and the path of a JSON file. Throws COMMAND_LINE_INVALID. */
export async function inputOf(given: string | undefined): Promise<Json> {
  return given === undefined ? {} : jsonOf('input', given, RUN)
}

/** Reads a flag: JSON, or `@` and the path of a JSON file. Throws COMMAND_LINE_INVALID. */
export async function jsonOf(flag: string, given: string, call: string): Promise<Json> {
  try {
    return JSON.parse(given.startsWith('@') ? await readFile(given.slice(1), 'utf8') : given) as Json
  } catch (error) {
    throw lineInvalid(`--${flag} is not valid JSON: ${messageOf(error)}`, call)
  }
}

/** Reads `name=value` parameters: as text if the definition expects text, else as JSON if possible. Throws COMMAND_LINE_INVALID. */
export function parametersOf(given: readonly string[], { parameters = {} }: WorkflowDefinition): Json {
  const pairs = given.map(pair => {
    const at = pair.indexOf('=')
    if (at < 1) throw lineInvalid(`--param must be <name>=<value>, was "${pair}"`, RUN)
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

/** Parses typed text as an answer; undefined if it is invalid. A number can stand for a choice. */
export function answerOf({ kind, choices = [], schema }: Question, typed: string): Json | undefined {
  const text = typed.trim()
  if (kind === 'approval') return YES.test(text) ? true : NO.test(text) ? false : undefined
  if (kind === 'choice') return choices.includes(text) ? text : choices[Number(text) - 1]
  return text === '' && !wantsText(schema) ? undefined : jsonOr(text, schema ?? { type: 'string' })
}

/** A short list of valid answers. */
export function answersTo({ kind, choices = [] }: Question): string {
  if (kind === 'approval') return '[y]es / [n]o'
  return kind === 'choice' ? choices.map((choice, at) => `[${at + 1}] ${choice}`).join(' / ') : 'your answer'
}

export const WORKFLOW_ARG = {
  workflow: Args.string({ description: 'Name or path of a workflow', required: true, ignoreStdin: true }),
}
export const RUN_ARG = { run: Args.string({ description: 'Id of a run', required: true, ignoreStdin: true }) }
export const DETACH_FLAG = {
  detach: Flags.boolean({ summary: 'Start the run, print its id and let a running server execute it', default: false }),
}
export const FOLLOW_FLAG = { follow: Flags.boolean({ summary: 'Show the run to its end', default: false }) }

const MINUTE = 60_000

/** Formats a duration. */
export function shownMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < MINUTE) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  return seconds < 3_600
    ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    : `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}

/** `3 tokens`, `1 token`. */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

export const contextOf = ({ signal }: CommandContext, command: string): CallContext =>
  systemContext(signal, `svc workflows ${command}`)

/** The workflow service of the configured host, in this process. */
export const openWorkflows = async (call: CommandContext): Promise<Workflows> => (await call.host()).service(Workflows)

/** The same for runs of other processes. Throws STORE_NOT_SHARED if the store is not durable. */
export async function openRuns(call: CommandContext, ctx: CallContext): Promise<Workflows> {
  await sharedStore(await call.host(), 'this command cannot see the runs of the server', ctx)
  return openWorkflows(call)
}
