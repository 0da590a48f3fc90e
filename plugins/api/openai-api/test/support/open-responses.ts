import type { Tree } from './api.ts'

/**
 * The shapes of the public specification Open Responses (https://www.openresponses.org, schema of 2026-04-24), written for these
 * tests: the required fields of each object, with their types.
 */
type Shape = Readonly<Record<string, string>>

const RESPONSE: Shape = {
  id: 'string',
  object: 'string',
  created_at: 'integer',
  completed_at: 'integer|null',
  status: 'string',
  incomplete_details: 'object|null',
  model: 'string',
  previous_response_id: 'string|null',
  instructions: 'string|null',
  output: 'items',
  error: 'object|null',
  tools: 'list',
  tool_choice: 'string|object',
  truncation: 'string',
  parallel_tool_calls: 'boolean',
  text: 'object',
  top_p: 'number',
  presence_penalty: 'number',
  frequency_penalty: 'number',
  top_logprobs: 'integer',
  temperature: 'number',
  reasoning: 'object|null',
  usage: 'usage|null',
  max_output_tokens: 'integer|null',
  max_tool_calls: 'integer|null',
  store: 'boolean',
  background: 'boolean',
  service_tier: 'string',
  metadata: 'object',
  safety_identifier: 'string|null',
  prompt_cache_key: 'string|null',
}
/** Number of keys that a response must have. */
export const REQUIRED = Object.keys(RESPONSE).length

const USAGE: Shape = {
  input_tokens: 'integer',
  output_tokens: 'integer',
  total_tokens: 'integer',
  input_tokens_details: 'object',
  output_tokens_details: 'object',
}

const ITEMS: Readonly<Record<string, Shape>> = {
  message: { id: 'string', status: 'status', role: 'string', content: 'parts' },
  function_call: { id: 'string', call_id: 'string', name: 'string', arguments: 'string', status: 'status' },
  function_call_output: { id: 'string', call_id: 'string', output: 'string|list', status: 'status' },
  reasoning: { id: 'string', summary: 'parts' },
}

const PARTS: Readonly<Record<string, Shape>> = {
  input_text: { text: 'string' },
  output_text: { text: 'string', annotations: 'list', logprobs: 'list' },
  summary_text: { text: 'string' },
  refusal: { refusal: 'string' },
}

const OF_ITEM: Shape = { output_index: 'integer', item: 'item' }
const OF_CALL: Shape = { item_id: 'string', output_index: 'integer' }
const OF_CONTENT: Shape = { item_id: 'string', output_index: 'integer', content_index: 'integer' }
const OF_SUMMARY: Shape = { item_id: 'string', output_index: 'integer', summary_index: 'integer' }
const OF_RESPONSE: Shape = { response: 'response' }

const EVENTS: Readonly<Record<string, Shape>> = {
  'response.created': OF_RESPONSE,
  'response.queued': OF_RESPONSE,
  'response.in_progress': OF_RESPONSE,
  'response.completed': OF_RESPONSE,
  'response.failed': OF_RESPONSE,
  'response.incomplete': OF_RESPONSE,
  'response.output_item.added': OF_ITEM,
  'response.output_item.done': OF_ITEM,
  'response.content_part.added': { ...OF_CONTENT, part: 'part' },
  'response.content_part.done': { ...OF_CONTENT, part: 'part' },
  'response.output_text.delta': { ...OF_CONTENT, delta: 'string', logprobs: 'list' },
  'response.output_text.done': { ...OF_CONTENT, text: 'string', logprobs: 'list' },
  'response.output_text.annotation.added': { ...OF_CONTENT, annotation_index: 'integer', annotation: 'object' },
  'response.refusal.delta': { ...OF_CONTENT, delta: 'string' },
  'response.refusal.done': { ...OF_CONTENT, refusal: 'string' },
  'response.function_call_arguments.delta': { ...OF_CALL, delta: 'string' },
  'response.function_call_arguments.done': { ...OF_CALL, arguments: 'string' },
  'response.reasoning_summary_part.added': { ...OF_SUMMARY, part: 'part' },
  'response.reasoning_summary_part.done': { ...OF_SUMMARY, part: 'part' },
  'response.reasoning_summary_text.delta': { ...OF_SUMMARY, delta: 'string' },
  'response.reasoning_summary_text.done': { ...OF_SUMMARY, text: 'string' },
}

const STATUSES: readonly unknown[] = ['in_progress', 'completed', 'incomplete']
const isObject = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Checks of the types: each returns the problems of a value at a place. */
const TYPES: Readonly<Record<string, (value: unknown, at: string) => string[]>> = {
  string: (value, at) => (typeof value === 'string' ? [] : [`${at} is not a string`]),
  integer: (value, at) => (Number.isInteger(value) ? [] : [`${at} is not an integer`]),
  number: (value, at) => (typeof value === 'number' ? [] : [`${at} is not a number`]),
  boolean: (value, at) => (typeof value === 'boolean' ? [] : [`${at} is not a boolean`]),
  null: (value, at) => (value === null ? [] : [`${at} is not null`]),
  object: (value, at) => (isObject(value) ? [] : [`${at} is not an object`]),
  list: (value, at) => (Array.isArray(value) ? [] : [`${at} is not a list`]),
  status: (value, at) => (STATUSES.includes(value) ? [] : [`${at} is no status`]),
  usage: (value, at) => fields(USAGE, value, at),
  response: (value, at) => fields(RESPONSE, value, at),
  item: (value, at) => typed(ITEMS, value, at),
  items: (value, at) => each(value, at, (one, place) => typed(ITEMS, one, place)),
  part: (value, at) => typed(PARTS, value, at),
  parts: (value, at) => each(value, at, (one, place) => typed(PARTS, one, place)),
}

function fields(shape: Shape, value: unknown, at: string): string[] {
  if (!isObject(value)) return [`${at} is not an object`]
  return Object.entries(shape).flatMap(([name, types]) => {
    if (!Object.hasOwn(value, name)) return [`${at}.${name} is missing`]
    const found = types.split('|').map(type => TYPES[type]!(value[name], `${at}.${name}`))
    return found.some(problems => problems.length === 0) ? [] : found.flat()
  })
}

function typed(shapes: Readonly<Record<string, Shape>>, value: unknown, at: string): string[] {
  const shape = isObject(value) && Object.hasOwn(shapes, value.type) ? shapes[value.type as string] : undefined
  return shape ? fields(shape, value, at) : [`${at} has an unknown type`]
}

const each = (value: unknown, at: string, check: (one: unknown, place: string) => string[]): string[] =>
  Array.isArray(value) ? value.flatMap((one, index) => check(one, `${at}[${index}]`)) : [`${at} is not a list`]

/** The problems of a response. */
export const responseProblems = (value: unknown): string[] => fields(RESPONSE, value, 'response')

/** The problems of an event stream: those of its events, and of their order. */
export function streamProblems(events: readonly Tree[]): string[] {
  const shapes = events.flatMap(event => [
    ...typed(EVENTS, event, String(event.type)),
    ...TYPES.integer!(event.sequence_number, `${event.type}.sequence_number`),
  ])
  return [...shapes, ...orderProblems(events)]
}

const TERMINAL = ['response.completed', 'response.incomplete', 'response.failed']

/** Items are added in order, are open while they change, and are done once; parts likewise. */
function orderProblems(events: readonly Tree[]): string[] {
  const problems: string[] = []
  const open = new Map<string, string>()
  let [added, last] = [0, -1]
  for (const { type, sequence_number, output_index, item, item_id } of events) {
    if (sequence_number <= last) problems.push(`${type}: number ${sequence_number} after ${last}`)
    last = sequence_number
    if (type === 'response.output_item.added') {
      if (output_index !== added++) problems.push(`item ${output_index} is added out of order`)
      open.set(item.id, type)
    } else if (type === 'response.output_item.done') {
      if (!open.delete(item.id)) problems.push(`item ${item.id} is done without being open`)
    } else if (item_id !== undefined && !open.has(item_id)) problems.push(`${type} of an item that is not open`)
  }
  if (!TERMINAL.includes(events.at(-1)?.type)) problems.push('the last event does not end the response')
  if (events.at(-1)?.type === 'response.completed' && open.size > 0) problems.push('an item is open at the end')
  return problems
}
