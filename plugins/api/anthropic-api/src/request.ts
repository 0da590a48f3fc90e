import { type Fields, Losses, isFields, fieldInvalid, objectAt, listAt, textAt, nameAt, integerAt, flagAt } from '@svc/api-types'
import type { Json, ModelMessage, OpenRequest, ReasoningEffort, RequestField } from '@svc/core/contracts'
import { wireName } from './errors.ts'
import { cacheHintOf, given, shareAt } from './fields.ts'
import { messagesOf } from './messages.ts'
import { checkServers, toolsOf } from './tools.ts'

/** How reasoning is shown: not at all, as signatures only, or whole. */
export type Thinking = 'none' | 'omitted' | 'shown'

/** A request in the terms of svc. */
export interface Translated {
  /** The name of the model or agent. */
  readonly name: string
  readonly isStream: boolean
  readonly request: OpenRequest
  readonly defaults: readonly RequestField[]
  readonly thinking: Thinking
  readonly losses: Losses
}

type Part = { -readonly [K in keyof OpenRequest]?: OpenRequest[K] }
type Take = (value: Json, losses: Losses) => Part

/** Fields that `translate` reads itself. */
const OTHERS = new Set([
  'model',
  'messages',
  'system',
  'max_tokens',
  'stream',
  'tools',
  'tool_choice',
  'thinking',
  'cache_control',
])

const NOTHING: Part = {}

/** A field that changes the answer, and that only servers of this API have. */
const refused =
  (field: string): Take =>
  (_value, losses) => {
    losses.refuse(field, 'is not supported by this model')
    return NOTHING
  }

/** The other fields, by their names. Each returns what it adds to the request. */
const TAKERS: Readonly<Record<string, Take>> = {
  temperature: value => ({ temperature: shareAt(value, 'temperature') }),
  top_p: topPOf,
  // 0 was the default of the first version of this API
  top_k: value => (value === 0 ? NOTHING : { topK: integerAt(value, 'top_k', 1) }),
  stop_sequences: stopOf,
  metadata: metadataOf,
  output_config: (value, losses) => outputConfig(objectAt(value, 'output_config'), losses),
  output_format: (value, losses) => formatOf(value, 'output_format', losses),
  service_tier: tierOf,
  mcp_servers: serversOf,
  container: refused('container'),
  inference_geo: refused('inference_geo'),
}

function topPOf(value: Json): Part {
  const topP = shareAt(value, 'top_p')
  if (topP === 0) throw fieldInvalid('top_p', 'must be above 0')
  return { topP }
}

function tierOf(value: Json, losses: Losses): Part {
  if (value !== 'auto') losses.drop('service_tier')
  return NOTHING
}

function serversOf(value: Json, losses: Losses): Part {
  checkServers(value, losses)
  return NOTHING
}

/**
 * Fields that a model can lack: it still answers, and the header of the response lists them. Clients must send `max_tokens`, so many send
 * one number for all models: the limit of the model counts. Few other servers have `top_k`, which only narrows the choice of tokens.
 */
const DEFAULTS: readonly RequestField[] = ['maxTokens', 'topK', 'reasoningEffort', 'reasoningTokens']

/** Whether the body is for an answer, or only to count its tokens. */
export type Purpose = 'answer' | 'count'

/** Translates the body of a request. Throws MISSING_FIELD, INVALID_VALUE. */
export function translate(body: Fields, purpose: Purpose): Translated {
  const losses = new Losses()
  const name = nameAt(body.model, 'model', 1_000)
  const maxTokens = maxTokensOf(body, purpose)
  const stream = given(body, 'stream')
  const isStream = purpose === 'answer' && stream !== undefined && flagAt(stream, 'stream')
  const thinking = thinkingOf(body, maxTokens, losses)
  const taken: Part = {}
  for (const field in body) {
    const value = given(body, field)
    if (value === undefined || OTHERS.has(field)) continue
    const take = Object.hasOwn(TAKERS, field) ? TAKERS[field] : undefined
    if (take) Object.assign(taken, take(value, losses))
    else losses.drop(field)
  }
  const request: OpenRequest = {
    messages: hinted(messagesOf(body, losses), body, losses),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...toolsOf(body, losses),
    ...taken,
    ...thinking.request,
    ...(isStream ? { toolCallDeltas: true } : { gathered: true }),
  }
  return { name, isStream, request, defaults: DEFAULTS, thinking: thinking.shown, losses }
}

function maxTokensOf(body: Fields, purpose: Purpose): number | undefined {
  const value = given(body, 'max_tokens')
  if (value !== undefined) return integerAt(value, 'max_tokens', 1)
  if (purpose === 'answer') throw fieldInvalid('max_tokens', 'is required')
  return undefined
}

/** A `cache_control` of the request marks the end of its last message. */
function hinted(messages: ModelMessage[], body: Fields, losses: Losses): ModelMessage[] {
  const hint = cacheHintOf(body, 'request', losses)
  const last = messages.at(-1)
  const part = last?.parts.at(-1)
  if (!hint.cacheHint || !last || !part) return messages
  if (part.type === 'reasoning' || part.type === 'tool_call') {
    losses.drop('cache_control')
    return messages
  }
  return [...messages.slice(0, -1), { ...last, parts: [...last.parts.slice(0, -1), { ...part, ...hint }] } as ModelMessage]
}

/** The names, on this wire, of fields that the model of an answer lacks. */
export function lackedNames({ request }: Translated, body: Fields, dropped: readonly RequestField[]): string[] {
  return dropped.flatMap(field => {
    // the client did not ask for pieces of arguments, and a model that need not reason lacks nothing
    if (field === 'toolCallDeltas' || (field === 'reasoningEffort' && request.reasoningEffort === 'none')) return []
    if (field !== 'reasoningEffort' || hasEffort(body)) return wireName(field)
    return 'thinking'
  })
}

/** Maximum texts that models of svc take. */
const MOST_STOPS = 4

function stopOf(value: Json, losses: Losses): Part {
  const stop = listAt(value, 'stop_sequences').map((item, at) => nameAt(item, `stop_sequences.${at}`, 10_000))
  if (stop.length > MOST_STOPS) losses.refuse('stop_sequences', `must have at most ${MOST_STOPS} texts for this model`)
  return stop.length === 0 ? NOTHING : { stop: stop.slice(0, MOST_STOPS) }
}

/** The id of the client's user or session: requests with the same one are likely to begin with the same messages. */
function metadataOf(value: Json, losses: Losses): Part {
  const metadata = objectAt(value, 'metadata')
  losses.dropUnknown(metadata, METADATA, 'metadata')
  const user = given(metadata, 'user_id')
  return user === undefined ? NOTHING : { cacheKey: nameAt(user, 'metadata.user_id', 1_000) }
}

const METADATA = new Set(['user_id'])

const EFFORTS: Readonly<Record<string, ReasoningEffort>> = {
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'max',
}
const OUTPUT = new Set(['effort', 'format'])

function outputConfig(config: Fields, losses: Losses): Part {
  losses.dropUnknown(config, OUTPUT, 'output_config')
  const [effort, format] = [given(config, 'effort'), given(config, 'format')]
  return {
    ...(effort === undefined ? {} : effortOf(effort, losses)),
    ...(format === undefined ? {} : formatOf(format, 'output_config.format', losses)),
  }
}

function effortOf(value: Json, losses: Losses): Part {
  const effort = typeof value === 'string' && Object.hasOwn(EFFORTS, value) ? EFFORTS[value] : undefined
  if (effort !== undefined) return { reasoningEffort: effort }
  losses.refuse('output_config.effort', `must be one of ${Object.keys(EFFORTS).join(', ')}`)
  return NOTHING
}

function formatOf(value: Json, path: string, losses: Losses): Part {
  const format = objectAt(value, path)
  if (format.type === 'json_schema') return { responseSchema: objectAt(format.schema, `${path}.schema`) }
  losses.refuse(`${path}.type`, 'must be "json_schema"')
  return NOTHING
}

interface ThinkingFields {
  readonly request: Part
  readonly shown: Thinking
}

const hasEffort = ({ output_config: config }: Fields): boolean => isFields(config) && given(config, 'effort') !== undefined

const THINKING = new Set(['type', 'budget_tokens', 'display'])
/** The effort of this API where the request names none. */
const USUAL_EFFORT = 'high'

function thinkingOf(body: Fields, maxTokens: number | undefined, losses: Losses): ThinkingFields {
  const value = given(body, 'thinking')
  if (value === undefined) return { request: {}, shown: 'none' }
  const thinking = objectAt(value, 'thinking')
  losses.dropUnknown(thinking, THINKING, 'thinking')
  const shown = thinking.display === 'omitted' ? 'omitted' : 'shown'
  switch (textAt(thinking.type, 'thinking.type')) {
    case 'disabled':
      return { request: { reasoningEffort: 'none' }, shown: 'none' }
    case 'adaptive':
      return { request: hasEffort(body) ? {} : { reasoningEffort: USUAL_EFFORT }, shown }
    case 'enabled': {
      const reasoningTokens = integerAt(thinking.budget_tokens, 'thinking.budget_tokens', 1024)
      if (maxTokens !== undefined && reasoningTokens >= maxTokens)
        throw fieldInvalid('thinking.budget_tokens', 'must be less than max_tokens')
      return { request: { reasoningTokens }, shown }
    }
    default:
      losses.refuse('thinking.type', 'must be "enabled", "adaptive" or "disabled"')
      return { request: {}, shown }
  }
}
