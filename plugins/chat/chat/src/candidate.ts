import { type CallContext, withTimeout } from '@svc/core'
import type { ModelInfo, ModelRef, ModelRequest, Provider } from '@svc/core/contracts'
import { invalid, modelBroke, modelsLate, turnTimeout, unfit } from './errors.ts'
import { hasImage, shaped } from './messages.ts'
import type { ChatRoom } from './parts.ts'
import type { Candidate, Turn } from './turn.ts'

/** Milliseconds a provider may take to tell its models. */
const LIST_MS = 5_000

/** Whoever the turn is to ask now. Where an alias named it, the turn has its real name from here on. Throws MODEL_FAILED. */
export async function candidateOf(room: ChatRoom, turn: Turn, ctx: CallContext): Promise<Candidate> {
  const { who, known, selected } = turn
  const source = room.providers.get(who.provider)
  // it was there when it was selected: plugins come and go
  if (!source) throw unfit(who.provider, `provider "${who.provider}" is not there`)
  if (known && known.source === source && sameModel(known, who)) return known
  if (selected.info && sameModel(selected, who)) return (turn.known = candidate(source, who, selected.info))
  const found = await listed(room, turn, source, ctx)
  turn.who = { provider: found.provider, model: found.model }
  return (turn.known = found)
}

/** Whether both are the same model of the same provider. */
export const sameModel = (one: ModelRef, other: ModelRef) => one.model === other.model && one.provider === other.provider

function candidate(source: Provider, { provider, model }: ModelRef, info: ModelInfo | undefined): Candidate {
  const features = info?.features ? { ...source.features, ...info.features } : source.features
  return { source, provider, model, info, features }
}

async function listed(
  { aliases, config }: ChatRoom,
  { who, until, limitMs }: Turn,
  source: Provider,
  ctx: CallContext
): Promise<Candidate> {
  const ms = Math.min(LIST_MS, config.first_token_timeout_ms)
  const left = Math.max(0, until - performance.now())
  const late = () => (left < ms ? turnTimeout(who.provider, limitMs) : modelsLate(who.provider, ms))
  const list = await withTimeout(Math.min(ms, left), signal => source.models({ ...ctx, signal }), { signal: ctx.signal, late })
  const infoOf = (id: string) => list.models.find(one => one.id === id)
  const alias = infoOf(who.model) ? undefined : aliases.get(who.model)
  const real = alias?.provider === who.provider ? alias : who
  const info = infoOf(real.model)
  if (!info && !list.open) throw unfit(who.provider, `provider "${who.provider}" has no model "${who.model.slice(0, 100)}"`)
  return candidate(source, real, info)
}

/**
 * The request as this model takes it. What a caller asked of the model that was selected and it cannot do is the caller's fault: INVALID_VALUE; what a profile
 * or mode asked is left out, and so is what another model cannot do that answers in its stead. Throws MODEL_FAILED where that would leave out tools by name.
 */
export function adaptToModel(request: ModelRequest, at: Candidate, turn: Turn): ModelRequest {
  if (takesAll(request, at)) return request
  const isSelected = sameModel(at, turn.selected)
  const { temperature, maxTokens, tools, messages, ...same } = request
  const keepsTools = tools !== undefined && takesTools(at, turn, isSelected)
  return {
    ...same,
    model: at.model,
    messages: shaped(messages, at.features),
    ...(keepsTools ? { tools } : {}),
    ...(temperature !== undefined && takesTemperature(at, turn, isSelected) ? { temperature } : {}),
    ...(maxTokens === undefined ? {} : { maxTokens: outputOf(maxTokens, at, turn, isSelected) }),
  }
}

const takesAll = ({ model, messages, temperature, maxTokens }: ModelRequest, at: Candidate) =>
  at.features.tool_calling &&
  (at.features.vision || !messages.some(hasImage)) &&
  model === at.model &&
  (temperature === undefined || at.info?.temperature !== false) &&
  (maxTokens === undefined || at.info?.output === undefined || maxTokens <= at.info.output)

function takesTools({ features, provider, model }: Candidate, { asked }: Turn, isSelected: boolean): boolean {
  if (features.tool_calling || !asked.tools) return features.tool_calling
  if (!isSelected) throw unfit(provider, `the model ${model} calls no tools`)
  throw invalid('tools', `cannot be used by the model ${model}: it calls no tools`, { value: asked.tools.slice(0, 20) })
}

function takesTemperature({ info, model }: Candidate, { asked }: Turn, isSelected: boolean): boolean {
  if (info?.temperature !== false) return true
  if (asked.temperature === undefined || !isSelected) return false
  throw invalid('temperature', `is not taken by the model ${model}`, { value: asked.temperature })
}

function outputOf(maxTokens: number, { info, model }: Candidate, { asked }: Turn, isSelected: boolean): number {
  if (info?.output === undefined || maxTokens <= info.output) return maxTokens
  if (asked.maxTokens === undefined || !isSelected) return info.output
  throw invalid('max_tokens', `must be at most ${info.output} for the model ${model}`, { value: maxTokens, limit: info.output })
}

/** A tap that sends a turn from model to model does not come to an end. */
export const tooManySwitches = (provider: string) => modelBroke(provider, 'was only ever passed over for another')
