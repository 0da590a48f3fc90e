import { defineService, defineSlot, type CallContext } from '@svc/core'
import type { Json } from './store.ts'
import type { Body, Budget } from './workflow.ts'
import type { Run, WorkflowProblem } from './workflow-run.ts'

/**
 * How the members of a team cooperate. `sequential`: one after the other, each sees all earlier results. `parallel`: all at
 * once, merged by a lead or combined. `hierarchical`: a lead assigns tasks in rounds. `pipeline`: each sees only the previous
 * result. `consensus`: proposals and votes. `reflection`: a writer and a critic.
 */
export type Formation = 'sequential' | 'parallel' | 'hierarchical' | 'pipeline' | 'consensus' | 'reflection'

/** One member of a team: a model with its own task. */
export interface TeamMember {
  readonly role: string
  /** Its goal, given to the model. */
  readonly goal: string
  /**
   * In `hierarchical` the lead (default: the first), in `reflection` the critic (default: the last), in `parallel` the member
   * that merges (default: none). At most one member.
   */
  readonly lead?: boolean
  readonly profile?: string
  readonly mode?: string
  /** Tool names. Absent: those of its mode. Empty: none. */
  readonly tools?: readonly string[]
  readonly budget?: Budget
}

/** The definition of a team. */
export interface TeamDefinition {
  readonly name: string
  readonly description?: string
  readonly formation: Formation
  /** Members by name, in working order. */
  readonly members: { readonly [name: string]: TeamMember }
  /** Budget of all members together. */
  readonly budget?: Budget
  /** For `consensus`, `reflection`, `hierarchical`: maximum number of rounds. Default 3. */
  readonly rounds?: number
  /** For `consensus`: the share of members that must agree, above 0.5 and up to 1. Default: more than half. */
  readonly agreement?: number
}

/** Teams of plugins by name. Items are data only. */
export const TeamDefinitions = defineSlot<TeamDefinition>('teams', { api: 1, methods: {} })

export interface TeamInfo {
  readonly name: string
  readonly description?: string
  /** Absent when it cannot be read. */
  readonly formation?: Formation
  readonly source: string
  readonly members: readonly string[]
  /** Why the team is unusable. Absent when it is usable. */
  readonly problems?: readonly WorkflowProblem[]
}

/**
 * Manages teams. A run of a team is a workflow run: it is stored, listed, cancelled and resumed like any other. Errors:
 * TEAM_UNKNOWN, TEAM_INVALID, and those of `Workflows`.
 */
export interface Teams {
  list(ctx: CallContext): Promise<readonly TeamInfo[]>
  show(team: string, ctx: CallContext): Promise<{ readonly info: TeamInfo; readonly definition: TeamDefinition }>
  /** The workflow body with which a team works on a task. */
  body(team: string, task: Json, ctx: CallContext): Promise<Body>
  start(team: string, task: Json, ctx: CallContext): Promise<Run>
}

export const Teams = defineService<Teams>('teams', {
  api: 1,
  methods: { list: 'call', show: 'call', body: 'call', start: 'call' },
})
