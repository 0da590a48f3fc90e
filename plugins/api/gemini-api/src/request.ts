import { type Fields, Losses, fieldInvalid, objectAt, listAt, textAt, nameAt, integerAt, numberAt, flagAt } from '@svc/api-types'
import type { Json, OpenRequest, ReasoningEffort, RequestField } from '@svc/core/contracts'
import { messagesOf } from './contents.ts'
import { wireName } from './errors.ts'
import { camelCased, given, wordAt } from './fields.ts'
import { schemaOf, toolsOf } from './tools.ts'

/** A request in the terms of svc. */
export interface Translated {
  readonly request: OpenRequest
  /** Whether the client sees thoughts. */
  readonly hasThoughts: boolean
  readonly losses: Losses
}

type Part = { -readonly [K in keyof OpenRequest]?: OpenRequest[K] }

/**
 * Fields that a model can lack: it still answers, and the header of the response lists them. Clients such as Gemini CLI send the first
 * three with all requests.
 */
export const DEFAULTS: readonly RequestField[] = [
  'temperature',
  'topP',
  'topK',
  'maxTokens',
  'reasoningEffort',
  'reasoningTokens',
  'strictTools',
]

/** Fields of a body that are read. */
const BODY = new Set(['model', 'contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig', 'cachedContent'])

/** Translates the body of a request. Throws INVALID_VALUE. */
export function translate(body: Fields, isStream: boolean): Translated {
  const losses = new Losses(camelCased)
  for (const name in body) if (!BODY.has(camelCased(name)) && !isEmpty(body[name])) losses.drop(camelCased(name))
  if (given(body, 'cachedContent') !== undefined) losses.refuse('cachedContent', 'is not supported by this model')
  const config = objectAt(given(body, 'generationConfig') ?? {}, 'generationConfig')
  const request: OpenRequest = {
    messages: messagesOf(body, losses),
    ...toolsOf(body, losses),
    ...settingsOf(config, losses),
    ...(isStream ? {} : { gathered: true }),
  }
  const thinking = given(config, 'thinkingConfig')
  const hasThoughts = thinking !== undefined && given(objectAt(thinking, THINKING), 'includeThoughts') === true
  return { request, hasThoughts, losses }
}

const isEmpty = (value: Json | undefined) => value === undefined || value === null || (Array.isArray(value) && value.length === 0)

type Take = (value: Json, path: string, losses: Losses) => Part

const THINKING = 'generationConfig.thinkingConfig'
const NOTHING: Part = {}

/** A field that changes the answer, and that only servers of this API have. */
const refused: Take = (_value, path, losses) => {
  losses.refuse(path, 'is not supported by this model')
  return NOTHING
}

/** The fields of `generationConfig` by their names. Each returns what it adds to the request. */
const TAKERS: Readonly<Record<string, Take>> = {
  temperature: (value, path) => ({ temperature: numberAt(value, path, 0, 2) }),
  topP: topPOf,
  // 0 means that there is no limit
  topK: (value, path) => (value === 0 ? NOTHING : { topK: integerAt(value, path, 1) }),
  candidateCount: candidatesOf,
  maxOutputTokens: (value, path) => ({ maxTokens: integerAt(value, path, 1) }),
  stopSequences: stopOf,
  seed: (value, path) => ({ seed: integerAt(value, path, -(2 ** 31), 2 ** 31 - 1) }),
  presencePenalty: (value, path) => ({ presencePenalty: numberAt(value, path, -2, 2) }),
  frequencyPenalty: (value, path) => ({ frequencyPenalty: numberAt(value, path, -2, 2) }),
  responseModalities: modalitiesOf,
  speechConfig: refused,
  imageConfig: refused,
  thinkingConfig: thinkingOf,
}

/** Fields that are read together, after the others. */
const TOGETHER = new Set([
  'responseLogprobs',
  'logprobs',
  'responseMimeType',
  'responseSchema',
  'responseJsonSchema',
  'ResponseJsonSchema',
])

function settingsOf(config: Fields, losses: Losses): Part {
  const taken: Part = {}
  for (const field in config) {
    const value = config[field]
    const name = camelCased(field)
    if (value === undefined || value === null || TOGETHER.has(name)) continue
    const take = Object.hasOwn(TAKERS, name) ? TAKERS[name] : undefined
    if (take) Object.assign(taken, take(value, `generationConfig.${name}`, losses))
    else losses.drop(`generationConfig.${name}`)
  }
  return { ...taken, ...logprobsOf(config), ...formatOf(config, losses) }
}

function topPOf(value: Json, path: string): Part {
  const topP = numberAt(value, path, 0, 1)
  if (topP === 0) throw fieldInvalid(path, 'must be above 0')
  return { topP }
}

function candidatesOf(value: Json, path: string): Part {
  if (integerAt(value, path, 1) > 1) throw fieldInvalid(path, 'must be 1: svc returns one candidate')
  return NOTHING
}

/** Maximum texts that models of svc take. */
const MOST_STOPS = 4

function stopOf(value: Json, path: string, losses: Losses): Part {
  const stop = listAt(value, path).map((item, at) => nameAt(item, `${path}[${at}]`, 10_000))
  if (stop.length > MOST_STOPS) losses.refuse(path, `must have at most ${MOST_STOPS} texts for this model`)
  return stop.length === 0 ? NOTHING : { stop: stop.slice(0, MOST_STOPS) }
}

function modalitiesOf(value: Json, path: string, losses: Losses): Part {
  const words = listAt(value, path).map((item, at) => wordAt(item, `${path}[${at}]`))
  if (words.some(word => word !== 'TEXT')) losses.refuse(path, 'must be TEXT for this model')
  return NOTHING
}

const THINKING_FIELDS = new Set(['includeThoughts', 'thinkingBudget', 'thinkingLevel'])
const LEVELS: Readonly<Record<string, ReasoningEffort>> = { MINIMAL: 'minimal', LOW: 'low', MEDIUM: 'medium', HIGH: 'high' }
/** The budget with which the model itself decides. */
const DYNAMIC = -1

function thinkingOf(value: Json, path: string, losses: Losses): Part {
  const thinking = objectAt(value, path)
  losses.dropUnknown(thinking, THINKING_FIELDS, path)
  const [shown, budget, level] = [
    given(thinking, 'includeThoughts'),
    given(thinking, 'thinkingBudget'),
    given(thinking, 'thinkingLevel'),
  ]
  if (shown !== undefined) flagAt(shown, `${path}.includeThoughts`)
  if (budget !== undefined && level !== undefined)
    throw fieldInvalid(`${path}.thinkingLevel`, 'must be absent beside thinkingBudget')
  if (budget !== undefined) {
    const tokens = integerAt(budget, `${path}.thinkingBudget`, DYNAMIC)
    if (tokens === 0) return { reasoningEffort: 'none' }
    return tokens === DYNAMIC ? NOTHING : { reasoningTokens: tokens }
  }
  // without a level, the model uses its own
  if (level === undefined) return NOTHING
  const word = wordAt(level, `${path}.thinkingLevel`)
  if (word === 'THINKING_LEVEL_UNSPECIFIED') return NOTHING
  const reasoningEffort = Object.hasOwn(LEVELS, word) ? LEVELS[word] : undefined
  if (reasoningEffort === undefined)
    throw fieldInvalid(`${path}.thinkingLevel`, `must be one of ${Object.keys(LEVELS).join(', ')}`)
  return { reasoningEffort }
}

function logprobsOf(config: Fields): Part {
  const [asked, alternatives] = [given(config, 'responseLogprobs'), given(config, 'logprobs')]
  const path = 'generationConfig.responseLogprobs'
  const isAsked = asked !== undefined && flagAt(asked, path)
  if (alternatives === undefined) return isAsked ? { logprobs: 0 } : NOTHING
  const logprobs = integerAt(alternatives, 'generationConfig.logprobs', 0, 20)
  if (!isAsked) throw fieldInvalid(path, 'must be true beside logprobs')
  return { logprobs }
}

const JSON_TYPE = 'application/json'

function formatOf(config: Fields, losses: Losses): Part {
  // older SDKs write the name of the field with a leading underscore
  const older = given(config, '_responseJsonSchema')
  const fields = older === undefined ? config : { ...config, responseJsonSchema: older }
  const type = given(config, 'responseMimeType') ?? 'text/plain'
  const path = 'generationConfig.responseMimeType'
  const mimeType = textAt(type, path)
  const responseSchema = schemaOf(fields, ['responseSchema', 'responseJsonSchema'], 'generationConfig')
  if (mimeType === JSON_TYPE) return responseSchema === undefined ? { responseFormat: 'json' } : { responseSchema }
  if (mimeType !== 'text/plain' && mimeType !== '') losses.refuse(path, `must be text/plain or ${JSON_TYPE} for this model`)
  else if (responseSchema !== undefined) throw fieldInvalid(path, `must be ${JSON_TYPE} with a schema`)
  return NOTHING
}

/** The names, on this wire, of fields that the model of an answer lacks. */
export const lackedNames = ({ request }: Translated, dropped: readonly RequestField[]): string[] =>
  dropped.flatMap(field => {
    // a model that need not reason lacks nothing
    if (field === 'toolCallDeltas' || (field === 'reasoningEffort' && request.reasoningEffort === 'none')) return []
    return wireName(field)
  })
