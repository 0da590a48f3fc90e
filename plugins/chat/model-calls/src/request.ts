import { type CallContext, type SlotView, withTimeout } from '@svc/core'
import type {
  MessagePart,
  ModelAlias,
  ModelFeature,
  ModelInfo,
  ModelRef,
  ModelRequest,
  OpenRequest,
  Provider,
  ProviderFeatures,
  RequestField,
  Selected,
} from '@svc/core/contracts'
import { callTimeout, invalid, modelsLate, unfit } from './errors.ts'
import { hasImage, shaped } from './messages.ts'

/** A model with its provider and features. The request is adapted to them. */
export interface ModelCandidate extends ModelRef {
  readonly source: Provider
  readonly info: ModelInfo | undefined
  readonly features: ProviderFeatures
}

/** What a candidate is looked up with. */
export interface CandidateLookup {
  readonly providers: SlotView<Provider>
  readonly aliases: SlotView<ModelAlias>
  readonly selected: Selected
  /** Milliseconds for the first event. */
  readonly firstMs: number
  /** The end of the call as `performance.now()`, and the time limit that it is of. */
  readonly until: number
  readonly timeoutMs: number
}

/** Time limit for the model list of a provider. */
const LIST_MS = 5_000

/** Whether both are the same model of the same provider. */
export const sameModel = (modelRef: ModelRef, other: ModelRef) =>
  modelRef.model === other.model && modelRef.provider === other.provider

/** The model to call, with an alias replaced by the real name. Throws MODEL_FAILED. */
export async function candidateOf(
  lookup: CandidateLookup,
  who: ModelRef,
  known: ModelCandidate | undefined,
  ctx: CallContext
): Promise<ModelCandidate> {
  const source = lookup.providers.get(who.provider)
  // the provider existed at selection; its plugin can have been unloaded since
  if (!source) throw unfit(who.provider, `provider "${who.provider}" is not available`)
  if (known && known.source === source && sameModel(known, who)) return known
  const { selected } = lookup
  if (selected.info && sameModel(selected, who)) return candidate(source, who, selected.info)
  return listed(lookup, who, source, ctx)
}

function candidate(source: Provider, { provider, model }: ModelRef, info: ModelInfo | undefined): ModelCandidate {
  const features = info?.features ? { ...source.features, ...info.features } : source.features
  return { source, provider, model, info, features }
}

async function listed(lookup: CandidateLookup, who: ModelRef, source: Provider, ctx: CallContext): Promise<ModelCandidate> {
  const ms = Math.min(LIST_MS, lookup.firstMs)
  const left = Math.max(0, lookup.until - performance.now())
  const late = () => (left < ms ? callTimeout(who.provider, lookup.timeoutMs) : modelsLate(who.provider, ms))
  const list = await withTimeout(Math.min(ms, left), signal => source.models({ ...ctx, signal }), { signal: ctx.signal, late })
  const infoOf = (id: string) => list.models.find(model => model.id === id)
  const alias = infoOf(who.model) ? undefined : lookup.aliases.get(who.model)
  const real = alias?.provider === who.provider ? alias : who
  const info = infoOf(real.model)
  if (!info && !list.open) throw unfit(who.provider, `provider "${who.provider}" has no model "${who.model.slice(0, 100)}"`)
  return candidate(source, real, info)
}

/** Features of providers without a list of them: what all providers supported before the list existed. */
const FORMER: readonly ModelFeature[] = ['tool_choice', 'response_schema']

/** The feature that a field needs. `of`: whether this value needs it; absent for a field that always does. */
interface FieldFeature {
  readonly feature: ModelFeature
  readonly of?: (value: unknown) => boolean
}

const FEATURES: { readonly [K in keyof OpenRequest]?: FieldFeature } = {
  temperature: { feature: 'high_temperature', of: value => Number(value) > 1 },
  topP: { feature: 'top_p' },
  topK: { feature: 'top_k' },
  stop: { feature: 'stop' },
  seed: { feature: 'seed' },
  n: { feature: 'n', of: value => Number(value) > 1 },
  frequencyPenalty: { feature: 'frequency_penalty' },
  presencePenalty: { feature: 'presence_penalty' },
  logitBias: { feature: 'logit_bias' },
  logprobs: { feature: 'logprobs' },
  reasoningEffort: { feature: 'reasoning_effort' },
  reasoningTokens: { feature: 'reasoning_effort' },
  toolChoice: { feature: 'tool_choice', of: value => value !== 'auto' },
  parallelToolCalls: { feature: 'parallel_tool_calls', of: value => value === false },
  toolCallDeltas: { feature: 'tool_call_deltas', of: value => value === true },
  responseFormat: { feature: 'json' },
  responseSchema: { feature: 'response_schema' },
}

/** The rules of an order for fields that a model does not support. */
export interface Fitting {
  readonly defaults: ReadonlySet<RequestField>
  /** The model is the one that the caller selected, and not one that answers in its place. */
  readonly isSelected: boolean
}

/** A request as a model takes it. */
export interface Fitted {
  readonly request: ModelRequest
  readonly dropped: readonly RequestField[]
}

const NOTHING: readonly RequestField[] = []

/**
 * Adapts a request to the features of a model.
 * Throws INVALID_VALUE for a field that the selected model does not support, unless the field is a default: that is dropped.
 * A model that answers in place of the selected model gets the request without such fields. Throws MODEL_FAILED if it cannot
 * call the tools that the caller names.
 */
export function fitRequest(asked: OpenRequest, at: ModelCandidate, fitting: Fitting): Fitted {
  const { native, ...open } = asked
  // the server of the provider judges a request of its own protocol
  if (native !== undefined && native.protocol === at.features.protocol)
    return { request: { ...asked, model: at.model }, dropped: NOTHING }
  const missing = missingFields(open, at)
  if (missing.length === 0) return { request: { ...open, model: at.model }, dropped: NOTHING }
  const dropped = missing.filter(field => isDropped(field, at, fitting, asked))
  return { request: { ...withoutFields(open, dropped, at), model: at.model }, dropped }
}

/** The fields of a request that a model does not support. */
function missingFields(request: OpenRequest, { features, info }: ModelCandidate): readonly RequestField[] {
  const supports = features.supports ?? FORMER
  const lacks = (feature: ModelFeature) => !supports.includes(feature)
  const missing = new Set<RequestField>(fieldsOf(request, lacks))
  const check = (field: RequestField, isMissing: boolean) => isMissing && missing.add(field)
  const { tools, temperature, maxTokens = 0 } = request
  check('tools', tools !== undefined && !features.tool_calling)
  check('temperature', temperature !== undefined && info?.temperature === false)
  check('maxTokens', info?.output !== undefined && maxTokens > info.output)
  check('strictTools', lacks('strict_tools') && tools?.some(tool => tool.strict === true) === true)
  checkParts(request, features, lacks, check)
  return [...missing]
}

const fieldsOf = (request: OpenRequest, lacks: (feature: ModelFeature) => boolean) =>
  (Object.entries(request) as [keyof OpenRequest, unknown][]).flatMap(([name, value]) => {
    const field = value === undefined ? undefined : FEATURES[name]
    return field && lacks(field.feature) && field.of?.(value) !== false ? [name] : []
  })

function checkParts(
  { messages, tools = [] }: OpenRequest,
  { vision }: ProviderFeatures,
  lacks: (feature: ModelFeature) => boolean,
  check: (field: RequestField, isMissing: boolean) => unknown
): void {
  const has = (type: MessagePart['type']) => messages.some(({ parts }) => parts.some(part => part.type === type))
  check('images', !vision && messages.some(hasImage))
  check('imageUrls', lacks('image_urls') && has('image_url'))
  check('files', lacks('files') && has('file'))
  check('audio', lacks('audio') && has('audio'))
  if (!lacks('cache_hints')) return
  const isHinted = (item: object) => 'cacheHint' in item
  check('cacheHints', tools.some(isHinted) || messages.some(({ parts }) => parts.some(isHinted)))
}

/** Fields that do not change the meaning of an answer. A model without them gets the request without them. */
const HARMLESS: ReadonlySet<RequestField> = new Set(['toolCallDeltas', 'cacheHints'])

/** Whether a field that the model does not support is dropped. Throws INVALID_VALUE or MODEL_FAILED if not. */
function isDropped(field: RequestField, at: ModelCandidate, { defaults, isSelected }: Fitting, asked: OpenRequest): boolean {
  if (HARMLESS.has(field) || defaults.has(field)) return true
  // a model that is not asked to reason need not be able to
  if (field === 'reasoningEffort' && asked.reasoningEffort === 'none') return true
  if (isSelected) throw unsupported(field, at, asked)
  if (field === 'tools') throw unfit(at.provider, `the model ${at.model} does not support tools`)
  return true
}

function unsupported(field: RequestField, { model, info }: ModelCandidate, asked: OpenRequest): Error {
  const name = field.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
  if (field === 'tools')
    return invalid('tools', `cannot be used by the model ${model}: the model does not support tools`, {
      value: (asked.tools ?? []).slice(0, 20).map(tool => tool.name),
    })
  if (field === 'maxTokens' && info?.output !== undefined)
    return invalid('max_tokens', `must be at most ${info.output} for the model ${model}`, {
      value: asked.maxTokens,
      limit: info.output,
    })
  const value = asked[field as keyof OpenRequest]
  const isPlain = typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean'
  return invalid(name, `is not supported by the model ${model}`, { ...(isPlain ? { value } : {}), unsupported: true })
}

/** The request without these fields. */
function withoutFields(request: OpenRequest, dropped: readonly RequestField[], { features, info }: ModelCandidate): OpenRequest {
  const out = new Set<string>(dropped)
  const kept = Object.fromEntries(Object.entries(request).filter(([name]) => !out.has(name))) as OpenRequest & {
    -readonly [K in keyof OpenRequest]: OpenRequest[K]
  }
  if (out.has('maxTokens') && info?.output !== undefined) kept.maxTokens = info.output
  if (out.has('tools')) {
    delete kept.indexed
    delete kept.toolChoice
  }
  if (kept.tools && (out.has('strictTools') || out.has('cacheHints')))
    kept.tools = kept.tools.map(({ strict, cacheHint, ...tool }) => ({
      ...tool,
      ...(strict === undefined || out.has('strictTools') ? {} : { strict }),
      ...(cacheHint === undefined || out.has('cacheHints') ? {} : { cacheHint }),
    }))
  kept.messages = shaped(request.messages, features, out)
  return kept
}
