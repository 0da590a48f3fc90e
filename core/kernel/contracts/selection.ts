import { defineService, defineSlot, type CallContext } from '@svc/core'
import type { ModelInfo } from './provider.ts'
import type { Effect } from './tool.ts'

/** A mode of working: which tools it allows by their effects, what it tells the model, how many tool calls it grants. All data. */
export interface Mode {
  readonly description: string
  readonly effects: readonly Effect[]
  /** Added to the system prompt. */
  readonly prompt: string
  /** Tool calls a turn. */
  readonly toolBudget: number
}

/** Modes by name. */
export const Modes = defineSlot<Mode>('modes', { api: 1, methods: {} })

/** A profile as `profiles.yaml` has it. */
export interface Profile {
  readonly name: string
  readonly description?: string
  readonly provider?: string
  readonly model?: string
  readonly temperature?: number
  readonly maxTokens?: number
  readonly systemPrompt?: string
  readonly mode?: string
  /** Names of the tools a turn has unless it names its own; absent: all that the mode allows. */
  readonly tools?: readonly string[]
  readonly fallback?: readonly { readonly provider: string; readonly model: string; readonly weight?: number }[]
}

/** Names of their own for models: `fast` → `groq`, `llama-3.3-70b-versatile`. All data; a name may stand wherever a model may. */
export interface ModelAlias {
  readonly provider: string
  readonly model: string
}
export const ModelAliases = defineSlot<ModelAlias>('model_aliases', { api: 1, methods: {} })

/** Provider and model of a turn, and where each came from. */
export interface ModelChoice {
  readonly provider: string
  readonly model: string
  readonly source: { readonly provider: ChoiceSource; readonly model: ChoiceSource }
}
export type ChoiceSource = 'request' | 'override' | 'profile' | 'default'

/** What is in force now. */
export interface Effective extends ModelChoice {
  readonly profile: string
  readonly mode: string
  readonly override: { readonly provider: string; readonly model: string } | null
  readonly profiles: readonly string[]
  readonly modes: readonly string[]
}

/** All that a turn takes from the selection: it keeps this, whatever is switched meanwhile. */
export interface Selected extends ModelChoice {
  /** What its provider tells of the model; absent where it is not listed. */
  readonly info?: ModelInfo
  readonly profile: Profile
  readonly mode: string
  /** Other candidates in order, from the profile. */
  readonly fallback: readonly { readonly provider: string; readonly model: string; readonly weight?: number }[]
}

/** What a turn asks for itself. */
export interface SelectionWish {
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly profile?: string | undefined
  readonly mode?: string | undefined
}

/**
 * The state of the server session: active profile, override, mode.
 * Errors: PROVIDER_NOT_FOUND, MODEL_NOT_FOUND, INVALID_VALUE (unknown profile or mode, `details: {field, value, allowed, reason}`).
 */
export interface Selection {
  effective(ctx: CallContext): Promise<Effective>
  profiles(
    ctx: CallContext
  ): Promise<{ readonly profiles: readonly Profile[]; readonly active: string; readonly default: string }>
  /** Who answers a turn that asks for this. A profile that is named wins over the override; its mode, where none is named, over the one in force. */
  select(asked: SelectionWish, ctx: CallContext): Promise<Selected>
  switchProfile(profile: string, ctx: CallContext): Promise<Effective>
  switchModel(provider: string, model: string, ctx: CallContext): Promise<Effective>
  switchMode(mode: string, ctx: CallContext): Promise<Effective>
}

export const Selection = defineService<Selection>('selection', {
  api: 1,
  methods: {
    effective: 'call',
    profiles: 'call',
    select: 'call',
    switchProfile: 'call',
    switchModel: 'call',
    switchMode: 'call',
  },
})
