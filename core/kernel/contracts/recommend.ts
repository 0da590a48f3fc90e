import { defineService, defineSlot, type Runtime, type CallContext } from '@svc/core'
import type { Formation } from './team.ts'

/** Conditions under which a vertical recommends a team, a workflow or both. */
export interface VerticalPattern {
  /**
   * Phrases. A phrase matches when the task contains all its words, in any order. A word that ends in `*` matches any word with
   * that prefix.
   */
  readonly words: readonly string[]
  readonly team?: string
  readonly workflow?: string
  /** Confidence of a match, above 0 and up to 1. Default 1. */
  readonly weight?: number
}

/** A vertical: a field of work with teams and workflows for tasks. */
export interface Vertical {
  readonly description: string
  readonly patterns: readonly VerticalPattern[]
  /** Names of its teams. */
  readonly teams: readonly string[]
  /** Names of its workflows. */
  readonly workflows: readonly string[]
}

/** Verticals by name. Items are data only. */
export const Verticals = defineSlot<Vertical>('verticals', { api: 1, methods: {} })

/** The recommended action of a client. */
export type RecommendedAction = 'none' | 'suggest' | 'auto_spawn' | 'require_approval'

export interface RecommendRequest {
  /** A task type or a short label: `code_review`, `fix the login`; at most 200 characters. */
  readonly taskType: string
  /** `trivial`, `low`, `medium`, `high`, `extreme`, or `simple`, `moderate`, `complex`, `very_high`. */
  readonly complexity: string
  /** `build` (the default), `plan`, `review`, `delegate` or `explore`. */
  readonly mode?: string
  /** Only this vertical. An unknown one has no recommendations. */
  readonly vertical?: string
}

export interface RecommendedTeam {
  readonly name: string
  /** 0 to 1. */
  readonly confidence: number
  /** Matched words. */
  readonly reason: string
  readonly formation: Formation
  /** Tool calls; null without a limit. */
  readonly suggestedBudget: number | null
  /** Number of members by role. */
  readonly roles: { readonly [role: string]: number }
  /** The plugin that contributes it. */
  readonly source: string
}

export interface RecommendedWorkflow {
  readonly name: string
  /** 0 to 1. */
  readonly confidence: number
  /** Matched words. */
  readonly reason: string
  /** The matched phrase; null when no pattern matched. */
  readonly trigger: string | null
  /** Its nodes. */
  readonly steps: number
}

/** The recommendation of a vertical for a task: a team, a workflow or both. */
export interface Recommendation {
  readonly vertical: string
  readonly action: RecommendedAction
  readonly team: RecommendedTeam | null
  readonly workflow: RecommendedWorkflow | null
}

/** Recommends teams and workflows. Errors: INVALID_VALUE (`details: {field, reason, value?, allowed?}`). */
export interface Recommend {
  /** One entry per vertical that matches the task, highest confidence first. */
  recommend(request: RecommendRequest, ctx: CallContext): Promise<readonly Recommendation[]>
}

export const Recommend = defineService<Recommend>('recommend', { api: 1, methods: { recommend: 'call' } })

/**
 * The runtime "vertical". Its plugins are one YAML file each, with a vertical and its teams and workflows. `open` throws
 * VERTICAL_INVALID; the other methods always throw.
 */
export const VerticalRuntime = defineService<Runtime>('runtime.vertical', {
  api: 1,
  methods: { open: 'call', call: 'call', run: 'call' },
})
