import { defineService, defineSlot, type CallContext, type Series } from '@svc/core'
import type { ModelInfo } from './provider.ts'
import type { ConfigProblem } from './server.ts'
import type { Effect } from './tool.ts'

/** A mode: the effects of allowed tools, a system prompt, a limit of tool calls. Data only. */
export interface Mode {
  readonly description: string
  readonly effects: readonly Effect[]
  /** Added to the system prompt. */
  readonly prompt: string
  /** Tool calls per turn. */
  readonly toolBudget: number
}

/** Modes by name. */
export const Modes = defineSlot<Mode>('modes', { api: 1, methods: {} })

/** A profile of `profiles.yaml`. */
export interface Profile {
  readonly name: string
  readonly description?: string
  readonly provider?: string
  readonly model?: string
  readonly temperature?: number
  readonly maxTokens?: number
  readonly systemPrompt?: string
  readonly mode?: string
  /** Default tools of a turn. Absent: all that the mode allows. */
  readonly tools?: readonly string[]
  readonly fallback?: readonly { readonly provider: string; readonly model: string; readonly weight?: number }[]
}

/** Aliases of models: `fast` → `groq`, `llama-3.3-70b-versatile`. Data only. An alias is valid wherever a model name is. */
export interface ModelAlias {
  readonly provider: string
  readonly model: string
}
export const ModelAliases = defineSlot<ModelAlias>('model_aliases', { api: 1, methods: {} })

/** Provider and model of a turn, and the source of each. */
export interface ModelChoice {
  readonly provider: string
  readonly model: string
  readonly source: { readonly provider: ChoiceSource; readonly model: ChoiceSource }
}
export type ChoiceSource = 'request' | 'override' | 'profile' | 'default'

/** The current selection. */
export interface Effective extends ModelChoice {
  readonly profile: string
  readonly mode: string
  readonly override: { readonly provider: string; readonly model: string } | null
  readonly profiles: readonly string[]
  readonly modes: readonly string[]
}

/** The selection of a turn. It does not change when a user switches models during the turn. */
export interface Selected extends ModelChoice {
  /** Information of its provider about the model. Absent when it is not listed. */
  readonly info?: ModelInfo
  readonly profile: Profile
  readonly mode: string
  /** Further candidates of the profile, in order. */
  readonly fallback: readonly { readonly provider: string; readonly model: string; readonly weight?: number }[]
}

/** The selection that a turn requests. */
export interface SelectionRequest {
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly profile?: string | undefined
  readonly mode?: string | undefined
}

/** The state of the server session after a switch. */
export interface SelectionChange {
  readonly profile: string
  readonly mode: string
}

export interface SelectionHooks {
  /** Runs in each worker after a switch of profile, model or mode, before the switch is answered. */
  changed: Series<SelectionChange>
}

/**
 * The state of the server session: active profile, override, mode. Errors: PROVIDER_NOT_FOUND, MODEL_NOT_FOUND, INVALID_VALUE
 * (unknown profile or mode, `details: {field, value, allowed, reason}`).
 */
export interface Selection {
  /** The current mode of the server. Asks no provider. */
  mode(ctx: CallContext): Promise<string>
  effective(ctx: CallContext): Promise<Effective>
  profiles(
    ctx: CallContext
  ): Promise<{ readonly profiles: readonly Profile[]; readonly active: string; readonly default: string }>
  /**
   * Selects the model of a turn. A named profile takes precedence over the override. Without a named mode, the mode of that
   * profile takes precedence over the current one.
   */
  select(asked: SelectionRequest, ctx: CallContext): Promise<Selected>
  switchProfile(profile: string, ctx: CallContext): Promise<Effective>
  switchModel(provider: string, model: string, ctx: CallContext): Promise<Effective>
  switchMode(mode: string, ctx: CallContext): Promise<Effective>
}

export const Selection = defineService<Selection, SelectionHooks>('selection', {
  api: 1,
  methods: {
    mode: 'call',
    effective: 'call',
    profiles: 'call',
    select: 'call',
    switchProfile: 'call',
    switchModel: 'call',
    switchMode: 'call',
  },
  hooks: { changed: 'series' },
})

/** The profiles file of the svc home, which clients can change. */
export interface ProfilesState {
  /** The default profile. */
  readonly default: string
  /** In the order of the file. */
  readonly profiles: readonly Profile[]
  /** Differs after each change of the file. */
  readonly version: string
  /** Whether the file has changes that the server does not run with: they take effect with the next reload. */
  readonly isPending: boolean
  /** Why clients cannot change it, such as that the configuration names another file. */
  readonly locked?: string
}

/** The problems of a draft, and what it names that is not there at the moment. */
export interface ProfileFindings {
  readonly problems: readonly ConfigProblem[]
  readonly warnings: readonly string[]
}

/**
 * The profiles file of the svc home. Changes take effect with the next reload. Errors: CONFIG_DRAFT_INVALID (`details: {problems}`),
 * CONFIG_LOCKED (the file cannot be changed here), INVALID_VALUE (an unknown profile), PRECONDITION_FAILED (`details: {version}`).
 */
export interface ProfileFile {
  read(ctx: CallContext): Promise<ProfilesState>
  /** Checks a profile together with the others of the file. Stores nothing. */
  check(profile: Profile, ctx: CallContext): Promise<ProfileFindings>
  /** Adds a profile, or replaces the one with its name. Comments and other profiles stay. Returns the version of the file. */
  write(profile: Profile, ifVersion: string | undefined, ctx: CallContext): Promise<{ readonly version: string }>
  remove(name: string, ifVersion: string | undefined, ctx: CallContext): Promise<{ readonly version: string }>
}

export const ProfileFile = defineService<ProfileFile>('profile_file', {
  api: 1,
  methods: { read: 'call', check: 'call', write: 'call', remove: 'call' },
})
