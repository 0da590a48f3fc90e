import { defineService, defineSlot, type CallContext } from '@svc/core'
import type { Json } from './store.ts'
import type { Body, Budget } from './workflow.ts'
import type { Run, WorkflowProblem } from './workflow-run.ts'

/**
 * How the members of a team work together: one after the other (each sees what those before have said), all at once (merged by a lead, or as it is), a lead that
 * gives out parts in rounds, stages (each sees only what the one before has made), proposals and votes, or a writer and a critic.
 */
export type Formation = 'sequential' | 'parallel' | 'hierarchical' | 'pipeline' | 'consensus' | 'reflection'

/** One member of a team: a model with a task of its own. */
export interface TeamMember {
  readonly role: string
  /** What it is to reach; told to the model. */
  readonly goal: string
  /** In `hierarchical`: leads the others (absent: the first); in `reflection`: judges (absent: the last); in `parallel`: merges (absent: nobody). One member at most. */
  readonly lead?: boolean
  readonly profile?: string
  readonly mode?: string
  /** Names of tools; absent: as its mode has it; empty: none. */
  readonly tools?: readonly string[]
  readonly budget?: Budget
}

/** A team, as it is written. */
export interface TeamDefinition {
  readonly name: string
  readonly description?: string
  readonly formation: Formation
  /** By name, in the order they work in. */
  readonly members: { readonly [name: string]: TeamMember }
  /** What all of them may spend together. */
  readonly budget?: Budget
  /** `consensus`, `reflection`, `hierarchical`: at most so many rounds; default 3. */
  readonly rounds?: number
  /** `consensus`: the share of members that must agree, above 0.5 up to 1; default more than half. */
  readonly agreement?: number
}

/** Teams that a plugin brings, by name; all data. */
export const TeamDefinitions = defineSlot<TeamDefinition>('teams', { api: 1, methods: {} })

export interface TeamInfo {
  readonly name: string
  readonly description?: string
  /** Absent where it cannot be read. */
  readonly formation?: Formation
  readonly source: string
  readonly members: readonly string[]
  /** Why it cannot work; absent where it can. */
  readonly problems?: readonly WorkflowProblem[]
}

/** Teams. A team's run is a run of a workflow, so it is stored, seen, cancelled and taken over like any. Errors: TEAM_UNKNOWN, TEAM_INVALID, and those of `Workflows`. */
export interface Teams {
  list(ctx: CallContext): Promise<readonly TeamInfo[]>
  show(team: string, ctx: CallContext): Promise<{ readonly info: TeamInfo; readonly definition: TeamDefinition }>
  /** What a team does with a task, as a body of a workflow. */
  body(team: string, task: Json, ctx: CallContext): Promise<Body>
  start(team: string, task: Json, ctx: CallContext): Promise<Run>
}

export const Teams = defineService<Teams>('teams', {
  api: 1,
  methods: { list: 'call', show: 'call', body: 'call', start: 'call' },
})
