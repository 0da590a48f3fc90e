import { defineService, defineSlot, type CallContext } from '@svc/core'
import type { Json } from './store.ts'
import type { PublicError } from './chat.ts'
import type { Body, Budget, Duration } from './workflow.ts'
import type { Run, RunUsage, WorkflowProblem } from './workflow-run.ts'

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

/**
 * The budget of a team. The team stops when it is used up: its result then has what the members have done until then. A round is
 * a turn of members that work at once, in `hierarchical`, `consensus` and `reflection` one round of them.
 */
export interface TeamBudget extends Budget {
  /** From the start of the team. */
  readonly time?: Duration
  readonly rounds?: number
}

/** The definition of a team. */
export interface TeamDefinition {
  readonly name: string
  readonly description?: string
  readonly formation: Formation
  /** Members by name, in working order. */
  readonly members: { readonly [name: string]: TeamMember }
  /** Budget of all members together. */
  readonly budget?: TeamBudget
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

/** Work for a team. Of its budget and that of the definition, the stricter value of each kind holds. */
export interface TeamOrder {
  readonly team: string
  readonly task: Json
  readonly budget?: TeamBudget
}

/** The kinds of a budget that stop a team. Without tool calls, members go on without tools. */
export type TeamLimit = 'tokens' | 'cost' | 'time' | 'rounds'

/** Why a team stopped before its end. */
export interface TeamStop {
  readonly budget: TeamLimit
  readonly reason: string
}

/** `partial`: a budget stopped it, or one of its members. */
export type TeamRunStatus = 'running' | 'completed' | 'partial' | 'failed' | 'cancelled'

/** A run of a team: its own, or a step of another workflow run. Times are Unix milliseconds. */
export interface TeamRunInfo {
  /** That of the run, with a suffix for a step of another workflow. */
  readonly id: string
  readonly run: string
  readonly step: string
  readonly workflow: string
  readonly team: string
  readonly formation: Formation
  /** The id of the principal that started the run. */
  readonly owner: string
  readonly status: TeamRunStatus
  /** The beginning of the task. */
  readonly task: string
  readonly budget?: TeamBudget
  /** Number of rounds that began. */
  readonly rounds: number
  readonly spent: RunUsage
  readonly stop?: TeamStop
  readonly error?: PublicError
  readonly startedAt: number
  readonly finishedAt?: number
}

/** `idle`: not asked. `stopped`: by a budget. */
export type TeamMemberStatus = 'idle' | 'running' | 'completed' | 'failed' | 'stopped' | 'cancelled'

/** What a member was asked once. */
export interface TeamMessage {
  readonly member: string
  /** The step of the workflow run. */
  readonly step: string
  readonly status: Exclude<TeamMemberStatus, 'idle'>
  readonly prompt: string
  readonly reply?: string
  /** The reply as data, if it had to be. */
  readonly data?: Json
  /** Prompt, reply or data is too long and was shortened. The step has the whole. */
  readonly shortened?: true
  readonly model?: string
  readonly attempts: number
  readonly tools: readonly {
    readonly tool: string
    readonly success: boolean
    readonly error?: string
  }[]
  readonly spent: RunUsage
  readonly error?: PublicError
  readonly startedAt: number
  readonly finishedAt?: number
}

/** A run of a team as a tree of rounds and messages. */
export interface TeamRun extends TeamRunInfo {
  readonly members: readonly {
    readonly name: string
    readonly role: string
    readonly lead: boolean
    readonly status: TeamMemberStatus
    readonly messages: number
    readonly spent: RunUsage
    /** The budget that stopped it, or because of which it was not asked. */
    readonly stoppedBy?: TeamLimit
    readonly error?: PublicError
  }[]
  /** Absent when the workflow run was deleted. */
  readonly tree?: readonly { readonly round: number; readonly messages: readonly TeamMessage[] }[]
}

export interface TeamRunQuery {
  readonly team?: string
  readonly status?: TeamRunStatus
  /** 1 to 200. */
  readonly limit: number
  readonly cursor?: string
}

/**
 * Manages teams. A run of a team is a workflow run: it is stored, listed, cancelled and resumed like any other. A principal sees
 * only its own runs; the scope `admin` sees all. Errors: TEAM_UNKNOWN, TEAM_INVALID, TEAM_RUN_UNKNOWN, INVALID_VALUE, and those of
 * `Workflows`.
 */
export interface Teams {
  list(ctx: CallContext): Promise<readonly TeamInfo[]>
  show(team: string, ctx: CallContext): Promise<{ readonly info: TeamInfo; readonly definition: TeamDefinition }>
  /** The workflow body with which a team works on a task. */
  body(order: TeamOrder, ctx: CallContext): Promise<Body>
  start(order: TeamOrder, ctx: CallContext): Promise<Run>
  /** Runs of teams, the newest first, as far as `teams.runs` keeps them. Only an absent `next` marks the end. */
  runs(query: TeamRunQuery, ctx: CallContext): Promise<{ readonly runs: readonly TeamRunInfo[]; readonly next?: string }>
  /** A run as a tree, also while it is running. */
  run(id: string, ctx: CallContext): Promise<TeamRun>
}

export const Teams = defineService<Teams>('teams', {
  api: 1,
  methods: { list: 'call', show: 'call', body: 'call', start: 'call', runs: 'call', run: 'call' },
})
