import { type CallContext, codeOf } from '@svc/core'
import type {
  Budget,
  ChildOutcome,
  ChildSpec,
  Graph,
  Json,
  NodeDefinition,
  NodeTask,
  PublicError,
  RunUsage,
  TeamBudget,
  TeamDefinition,
  TeamLimit,
  TeamStop,
  WorkflowNode,
} from '@svc/core/contracts'
import { formProblems } from './definition.ts'
import { teamInvalid } from './errors.ts'
import { FORMATIONS, systemOf, taskText } from './formations.ts'
import { type Clock, limitOf, roundOf, stopBefore, stopIn, timeOf, usageOf } from './team-budget.ts'
import { type MemberPrompt, type Ending, type Member, type Said, replay, type Team, teamOf } from './team.ts'

/** State between calls: all replies, and the members that are being asked. */
interface TeamState {
  /** When a team with a budget of time began, in Unix milliseconds. */
  readonly since?: number
  readonly heard: readonly (readonly Said[])[]
  readonly asked: readonly string[]
}

const RESULT = {
  type: 'object',
  properties: {
    team: { type: 'string' },
    formation: { type: 'string' },
    answer: { type: ['string', 'null'], description: 'Null without an agreement' },
    partial: {
      type: 'object',
      properties: { budget: { enum: ['tokens', 'cost', 'time', 'rounds'] }, reason: { type: 'string' } },
      description: 'Which budget stopped the team or a member, and why. Absent otherwise',
    },
    members: {
      type: 'object',
      description:
        'By name: `status` completed, failed, stopped or idle (not asked), the budget that prevented more (`stopped_by`), and the last `error`',
    },
    budget: { type: 'object' },
    rounds: { type: 'integer' },
    agreed: { type: 'boolean' },
    approved: { type: 'boolean' },
    reasons: { type: 'array', items: { type: 'string' } },
    positions: { type: 'object' },
    votes: { type: 'object' },
    spent: {
      type: 'object',
      properties: {
        tokens: { type: 'integer' },
        tool_calls: { type: 'integer' },
        cost: { type: 'number' },
        time_ms: { type: 'integer' },
        rounds: { type: 'integer' },
      },
    },
  },
  required: ['team', 'formation', 'answer', 'members', 'spent'],
}

/** Records the runs of teams. */
export interface TeamRecorder {
  /** At the start, before each round, and at the end. */
  record(task: NodeTask, team: Team, state: TeamProgress, ctx: CallContext): Promise<void>
}

/** What is known of a run of a team. */
export interface TeamProgress {
  readonly since: number
  readonly round: number
  readonly spent: RunUsage
  readonly ended?: 'completed' | 'partial' | 'failed'
  readonly stop?: TeamStop
  readonly error?: PublicError
}

/** Creates the node type of a team. Members run as children, so each is a step of the run. */
export const createTeamNode = (recorder: TeamRecorder): WorkflowNode => ({
  description: 'Runs a team on a task. `Teams.body` creates this node; use `team` in workflows.',
  settings: {
    type: 'object',
    properties: {
      team: { type: 'object', description: 'Definition of the team' },
      task: { description: 'Task of the team' },
    },
    required: ['team', 'task'],
    additionalProperties: false,
  },
  output: RESULT,
  repeatable: true,
  async *run(task: NodeTask, ctx) {
    const { settings, state, children = {}, allowance } = task
    const team = teamIn(settings.team)
    const kept = state as unknown as TeamState | undefined
    const now = Date.now()
    const clock = { since: kept?.since ?? now, now }
    const heard = kept ? [...kept.heard, saidBy(team, kept.asked, children, clock)] : []
    const next = nextOf(team, taskText(settings.task), heard, { allowance, clock })
    const { since } = clock
    const progress = { since, round: roundAt(team, heard), spent: usageOf(heard.flat().map(({ usage }) => usage)) }
    if ('failed' in next) {
      await recorder.record(task, team, { ...progress, ended: 'failed', error: publicError(next.failed) }, ctx)
      throw next.failed
    }
    if ('asks' in next) {
      await recorder.record(task, team, { ...progress, round: next.round }, ctx)
      const forked = childrenOf(team, next, heard, clock)
      return yield {
        type: 'fork',
        join: 'all',
        children: forked,
        state: keptOf(team.budget.time === undefined ? undefined : since, heard, next.asks),
      }
    }
    const { ending, stop } = next
    const ended = stop ? ({ ended: 'partial', stop } as const) : ({ ended: 'completed' } as const)
    await recorder.record(task, team, { ...progress, ...ended }, ctx)
    yield { type: 'output', output: resultOf(team, heard, { ending, stop, round: progress.round, clock }) }
  },
})

const publicError = (error: unknown): PublicError => ({
  code: codeOf(error) ?? 'INTERNAL_ERROR',
  message: error instanceof Error ? error.message : String(error),
  details: {},
})

/** What a team does next: asks members, ends, or fails. */
type Next =
  | { readonly asks: readonly MemberPrompt[]; readonly round: number }
  | { readonly ending: Ending; readonly stop: TeamStop | undefined }
  | { readonly failed: unknown }

interface Around {
  readonly allowance: Budget
  readonly clock: Clock
}

type Heard = readonly (readonly Said[])[]

function nextOf(team: Team, task: string, heard: Heard, { allowance, clock }: Around): Next {
  try {
    const at = replay(FORMATIONS[team.formation](team, task), heard)
    if (at.done) return { ending: at.value, stop: stopIn(heard.flat()) }
    const round = roundOf(
      team,
      heard.map(membersIn),
      at.value.map(({ member }) => member)
    )
    const stop = stopBefore(team, round, allowance, clock)
    return stop ? { ending: unfinished(heard), stop } : { asks: at.value, round }
  } catch (error) {
    // the formation needs a member that a budget stopped
    const stop = stopIn(heard.at(-1) ?? [])
    return stop ? { ending: unfinished(heard), stop } : { failed: error }
  }
}

const membersIn = (said: readonly Said[]) => said.map(({ member }) => member)

/** The round of the last turn; 0 before the first. */
const roundAt = (team: Team, heard: Heard): number =>
  heard.length === 0 ? 0 : roundOf(team, heard.slice(0, -1).map(membersIn), membersIn(heard.at(-1)!))

/** Without an answer: what each member said last. */
function unfinished(heard: Heard): Ending {
  const said = heard.flat().filter(({ error, text }) => !error && text !== '')
  return { answer: null, positions: Object.fromEntries(said.map(({ member, text }) => [member, text])) }
}

/** The team as it was when the body was created. Checks it, because a person can have written the node. Throws TEAM_INVALID. */
function teamIn(definition: Json | undefined): Team {
  const problems = formProblems(definition)
  if (problems.length > 0) throw teamInvalid('team', problems)
  return teamOf(definition as unknown as TeamDefinition)
}

const keptOf = (since: number | undefined, heard: Heard, asks: readonly MemberPrompt[]): Json =>
  ({ ...(since === undefined ? {} : { since }), heard, asked: asks.map(({ member }) => member) }) as unknown as Json

/** The replies in the order of the prompts. */
function saidBy(team: Team, asked: readonly string[], children: Readonly<Record<string, ChildOutcome>>, clock: Clock): Said[] {
  const outcomes = Object.values(children)
  return asked.map((member, at) => saidOf(team, member, outcomes[at], clock))
}

/** The round and the position are in the key of a child, so that its steps alone give the tree of the run. */
function childrenOf(
  team: Team,
  { asks, round }: { readonly asks: readonly MemberPrompt[]; readonly round: number },
  heard: Heard,
  { since, now }: Clock
): ChildSpec[] {
  const before = heard.flat().length
  const asked = new Map(asks.map(({ member }) => [member, asks.filter(ask => ask.member === member)]))
  const leftMs = timeOf(team.budget) - (now - since)
  return asks.map((ask, at) => {
    const member = team.members.find(({ name }) => name === ask.member)!
    const own = asked.get(ask.member)!
    const vars = { system: systemOf(team, member), prompt: ask.prompt }
    const budget = budgetsOf(member, heard, own.length)[own.indexOf(ask)]
    return { key: `${round}-${before + at + 1}-${member.name}`, body: memberBody(member, ask, budget, leftMs), vars }
  })
}

/** A turn that does not end in time is cut off after this time more. Its usage is then unknown. */
const MARGIN_MS = 2_000
const LONGEST_MS = 86_400_000

/** The body that asks a member once, with its share of the member's budget. */
function memberBody(member: Member, { schema, judges }: MemberPrompt, budget: Budget | undefined, leftMs: number): Graph {
  const tools = judges ? [] : member.tools
  const agent: NodeDefinition = {
    type: 'agent',
    system: '${{ system }}',
    prompt: '${{ prompt }}',
    ...(member.profile === undefined ? {} : { profile: member.profile }),
    ...(member.mode === undefined ? {} : { mode: member.mode }),
    ...(tools === undefined ? {} : { tools }),
    ...(schema === undefined ? {} : { output: schema }),
    ...(leftMs < LONGEST_MS
      ? { turn_limit_ms: Math.max(1, Math.ceil(leftMs)), timeout: `${Math.ceil(leftMs) + MARGIN_MS}ms` }
      : {}),
  }
  return { nodes: { [member.name]: agent }, ...(budget ? { budget } : {}) }
}

/** Divides the remaining budget of a member among prompts that run at once. Of a reply without usage, the whole share counts as spent. */
function budgetsOf({ name, budget }: Member, heard: Heard, count: number): readonly (Budget | undefined)[] {
  if (!budget) return Array.from({ length: count }, () => undefined)
  let left = budget
  for (const round of heard) {
    const own = round.filter(({ member }) => member === name)
    const given = sharesOf(left, own.length)
    left = own.reduce((rest, said, at) => less(rest, said.usage ?? given[at]!), left)
  }
  return sharesOf(left, count)
}

type Kind = keyof Budget

const each = (budget: Budget, part: (left: number, kind: Kind) => number): Budget =>
  Object.fromEntries(Object.entries(budget).map(([kind, left]) => [kind, part(left, kind as Kind)]))

const less = (budget: Budget, spent: Budget): Budget => each(budget, (left, kind) => Math.max(0, left - (spent[kind] ?? 0)))

/** The first shares get the remainder of what is whole. */
const sharesOf = (budget: Budget, count: number): Budget[] =>
  Array.from({ length: count }, (_, at) =>
    each(budget, (left, kind) => (kind === 'cost' ? left / count : Math.floor(left / count) + (at < left % count ? 1 : 0)))
  )

/** Output of a node `agent`. */
interface AgentOutput {
  readonly text: string
  readonly data?: Json
  readonly tokens: number
  readonly cost?: number
  readonly tools_used: readonly Json[]
}

/** Status of a member after its last reply, and its last error. */
interface MemberOutcome {
  readonly status: 'completed' | 'failed' | 'stopped' | 'idle'
  readonly stopped_by?: TeamLimit
  readonly error?: PublicError
}

/** Output of a team. */
export interface TeamResult extends Ending {
  readonly team: string
  readonly formation: Team['formation']
  /** Absent unless a budget stopped the team or one of its members. Without an answer, the team did not come to its end. */
  readonly partial?: TeamStop
  readonly members: { readonly [name: string]: MemberOutcome }
  readonly budget?: TeamBudget
  readonly spent: {
    readonly tokens: number
    readonly tool_calls: number
    readonly cost?: number
    /** With a budget of time. */
    readonly time_ms?: number
    readonly rounds: number
  }
}

const CANCELLED: PublicError = { code: 'CANCELLED', message: 'cancelled', details: {} }

/** The reply of a member, from the outcome of its child. */
function saidOf({ budget }: Team, member: string, outcome: ChildOutcome | undefined, clock: Clock): Said {
  const usage = outcome?.usage
  if (outcome?.status !== 'completed') {
    const error = outcome?.status === 'failed' ? outcome.error : CANCELLED
    const stoppedBy = limitOf(error, budget, clock)
    return { member, text: '', error, ...(stoppedBy ? { stoppedBy } : {}), ...(usage ? { usage } : {}) }
  }
  const { text, data, tokens, cost, tools_used: tools } = outcome.output as unknown as AgentOutput
  const reported = usage ?? { tokens, tool_calls: tools.length, ...(cost === undefined ? {} : { cost }) }
  return { member, text, ...(data === undefined ? {} : { data }), usage: reported }
}

interface Outcome {
  readonly ending: Ending
  readonly stop: TeamStop | undefined
  readonly round: number
  readonly clock: Clock
}

function resultOf(team: Team, heard: Heard, { ending, stop, round, clock }: Outcome): Json {
  const all = heard.flat()
  const { toolCalls, ...used } = usageOf(all.map(({ usage }) => usage))
  const result: TeamResult = {
    team: team.name,
    formation: team.formation,
    ...ending,
    ...(stop ? { partial: stop } : {}),
    members: Object.fromEntries(
      team.members.map(({ name }) => [
        name,
        outcomeOf(
          all.filter(({ member }) => member === name),
          stop
        ),
      ])
    ),
    ...(Object.keys(team.budget).length > 0 ? { budget: team.budget } : {}),
    spent: {
      ...used,
      tool_calls: toolCalls,
      rounds: round,
      ...(team.budget.time === undefined ? {} : { time_ms: clock.now - clock.since }),
    },
  }
  return result as unknown as Json
}

function outcomeOf(said: readonly Said[], stop: TeamStop | undefined): MemberOutcome {
  const last = said.at(-1)
  if (!last) return { status: 'idle', ...(stop ? { stopped_by: stop.budget } : {}) }
  const error = said.findLast(item => item.error)?.error
  const status = last.stoppedBy ? 'stopped' : last.error ? 'failed' : 'completed'
  return { status, ...(last.stoppedBy ? { stopped_by: last.stoppedBy } : {}), ...(error ? { error } : {}) }
}
