import { defineService, defineSlot, type Runtime, type CallContext } from '@svc/core'
import type { Formation } from './team.ts'

/** Which tasks are for a team, a workflow or both. */
export interface VerticalPattern {
  /** Phrases: matches when all words of one are in the task, in any order. A word that ends in `*` stands for all that begin so. */
  readonly words: readonly string[]
  readonly team?: string
  readonly workflow?: string
  /** How sure a match makes, above 0 up to 1; default 1. */
  readonly weight?: number
}

/** A field of work: what it has for which tasks. */
export interface Vertical {
  readonly description: string
  readonly patterns: readonly VerticalPattern[]
  /** Names of its teams. */
  readonly teams: readonly string[]
  /** Names of its workflows. */
  readonly workflows: readonly string[]
}

/** Verticals by name; all data. */
export const Verticals = defineSlot<Vertical>('verticals', { api: 1, methods: {} })

/** What a client is told to do with a recommendation. */
export type RecommendedAction = 'none' | 'suggest' | 'auto_spawn' | 'require_approval'

export interface RecommendRequest {
  /** A task type or a short label: `code_review`, `fix the login`; at most 200 characters. */
  readonly taskType: string
  /** `trivial`, `low`, `medium`, `high`, `extreme`, or `simple`, `moderate`, `complex`, `very_high`. */
  readonly complexity: string
  /** `build` (the default), `plan`, `review`, `delegate` or `explore`. */
  readonly mode?: string
  /** Only this one; one that there is not has nothing to recommend. */
  readonly vertical?: string
}

export interface RecommendedTeam {
  readonly name: string
  /** 0 to 1. */
  readonly confidence: number
  /** What matched. */
  readonly reason: string
  readonly formation: Formation
  /** Tool calls; null where it may use as many as it likes. */
  readonly suggestedBudget: number | null
  /** How many members have a role. */
  readonly roles: { readonly [role: string]: number }
  /** The plugin that it comes from. */
  readonly source: string
}

export interface RecommendedWorkflow {
  readonly name: string
  /** 0 to 1. */
  readonly confidence: number
  /** What matched. */
  readonly reason: string
  /** The phrase that matched; null where no pattern did. */
  readonly trigger: string | null
  /** Its nodes. */
  readonly steps: number
}

/** What a vertical has for a task: a team, a workflow or both. */
export interface Recommendation {
  readonly vertical: string
  readonly action: RecommendedAction
  readonly team: RecommendedTeam | null
  readonly workflow: RecommendedWorkflow | null
}

/** Recommends teams and workflows. Errors: INVALID_VALUE (`details: {field, reason, value?, allowed?}`). */
export interface Recommend {
  /** One entry for each vertical that has something for the task; the surest first. */
  recommend(request: RecommendRequest, ctx: CallContext): Promise<readonly Recommendation[]>
}

export const Recommend = defineService<Recommend>('recommend', { api: 1, methods: { recommend: 'call' } })

/** The runtime "vertical": its plugins are one YAML file each, with a vertical and its teams and workflows; `open` throws VERTICAL_INVALID, the others always. */
export const VerticalRuntime = defineService<Runtime>('runtime.vertical', {
  api: 1,
  methods: { open: 'call', call: 'call', run: 'call' },
})
