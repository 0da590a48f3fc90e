import { INTEGER, list, nullable, OBJECT, object, ok, STRING, text, words } from '@svc/api-types'
import type { CallContext, JsonSchema } from '@svc/core'
import type { Json, Route, Run, RunEvent, TeamBudget, TeamInfo, TeamMember, Teams, Workflows } from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { retryField } from '@svc/provider-http/sse'
import { framesOf, type StreamEvent } from '../frames.ts'
import { PROBLEM, problemRecord, timeRecord } from '../records.ts'
import { BUDGET, TEAMS_PATH, teamRunRoutes } from './team-runs.ts'

export interface TeamServices {
  readonly teams: Teams
  readonly workflows: Workflows
  /** Aborts when another worker takes over: open streams end then. */
  readonly leaving: AbortSignal
}

const FORMATIONS = ['sequential', 'parallel', 'hierarchical', 'pipeline', 'consensus', 'reflection'] as const
const teamFields = {
  name: STRING,
  description: nullable('string'),
  formation: { type: ['string', 'null'], enum: [...FORMATIONS, null] },
  source: { ...(STRING as object), description: 'The plugin or file that contains it.' },
  problems: { ...(list(PROBLEM) as object), description: 'Problems that prevent its use.' },
} as const satisfies Record<string, JsonSchema>
const MEMBER = object({
  name: STRING,
  role: STRING,
  goal: STRING,
  lead: { type: 'boolean' },
  profile: nullable('string'),
  mode: nullable('string'),
  tools: { type: ['array', 'null'], items: STRING, description: 'Null: the tools of its mode.' },
  budget: BUDGET,
})
const TEAM: JsonSchema = { ...(object({ ...teamFields, members: list(STRING) }) as object), title: 'Team' }
const DETAIL: JsonSchema = {
  ...(object({
    ...teamFields,
    members: list(MEMBER),
    budget: BUDGET,
    rounds: nullable('integer'),
    agreement: nullable('number'),
  }) as object),
  title: 'TeamDetail',
}
const EVENT: JsonSchema = {
  title: 'TeamEvent',
  oneOf: [
    object({
      type: { const: 'start' },
      team: STRING,
      id: { ...(STRING as object), description: 'The run of the team, for /api/v1/teams/runs.' },
      run_id: { ...(STRING as object), description: 'The workflow run, for /api/v1/workflows.' },
      at: STRING,
    }),
    object({
      type: { const: 'member' },
      member: STRING,
      status: words('started', 'progress', 'retrying', 'completed', 'failed', 'cancelled'),
      step: STRING,
      round: nullable('integer'),
      at: STRING,
      data: { ...(OBJECT as object), description: 'As in the events of the run.' },
    }),
    object({ type: { const: 'error' }, error: STRING, error_code: STRING, details: OBJECT }),
    object({
      type: { const: 'end' },
      run_id: STRING,
      status: words('completed', 'failed', 'running'),
      result: { description: 'The answer, and the work of each member. With partial, a budget stopped the team or a member.' },
      error: { type: ['object', 'null'] },
      duration_ms: INTEGER,
    }),
  ],
}
const runBody: JsonSchema = {
  ...(object(
    {
      task: { ...(text('The task.') as object), maxLength: 200_000 },
      budget: {
        type: 'object',
        properties: {
          tokens: { type: 'integer', minimum: 0 },
          tool_calls: { type: 'integer', minimum: 0 },
          cost: { type: 'number', minimum: 0, description: 'In the currency of models.prices.' },
          time: { type: 'string', maxLength: 20, description: 'From the start of the team: 30s, 5m.' },
          rounds: { type: 'integer', minimum: 1, maximum: 1_000 },
        },
        additionalProperties: false,
        description:
          'Of this and the budget of the team, the stricter value of each kind holds. A team that it stops has a partial result.',
      },
    },
    ['task']
  ) as object),
  additionalProperties: false,
}

/** Routes for teams. A run of a team is a workflow run: it continues when its reader leaves. */
export const createTeamRoutes = (services: TeamServices, publish: Publish): Record<string, Route> => ({
  teams: {
    method: 'GET',
    path: TEAMS_PATH,
    summary: 'List teams',
    scope: 'read',
    responses: ok('The teams.', object({ teams: list(TEAM) })),
    async handle(_request, ctx) {
      const teams = await services.teams.list(ctx)
      return { body: { teams: teams.map(info => ({ ...infoOf(info), members: [...info.members] })) } }
    },
  },
  ...teamRunRoutes(services.teams),
  team: {
    method: 'GET',
    path: `${TEAMS_PATH}/:name`,
    summary: 'Read a team with its members',
    scope: 'read',
    responses: ok('The team.', DETAIL),
    async handle({ params }, ctx) {
      const { info, definition } = await services.teams.show(params.name!, ctx)
      const { budget, rounds, agreement } = definition
      const members = Object.entries(definition.members ?? {}).map(memberRecord)
      const more = { budget: budget ?? null, rounds: rounds ?? null, agreement: agreement ?? null }
      return { body: { ...infoOf(info), members, ...more } }
    },
  },
  team_run: {
    method: 'POST',
    path: `${TEAMS_PATH}/:name/run`,
    summary: 'Run a team on a task and stream the work of its members',
    description:
      'The run continues when the stream is closed: follow it with GET /api/v1/workflows/{run_id}/events, stop it with POST …/cancel.',
    scope: 'workflows',
    body: runBody,
    responses: {
      '200': {
        description:
          'Server-sent events: start first, a member event for each step of a member, end last. Without an end, the server was reloaded: follow the run. Comments are heartbeats.',
        schema: EVENT,
        contentType: 'text/event-stream',
      },
    },
    streams: 'text/event-stream',
    stream: ({ params, body }, ctx) =>
      runFrames(services, { team: params.name!, ...(body as unknown as TeamBody) }, publish, ctx),
  },
})

interface TeamBody {
  readonly task: string
  readonly budget?: TeamBudget
}

async function* runFrames(
  { teams, workflows, leaving }: TeamServices,
  order: TeamBody & { readonly team: string },
  publish: Publish,
  ctx: CallContext
): AsyncGenerator<string, void> {
  const { team: name } = order
  const run = await teams.start(order, ctx)
  publish({ type: 'team_run_started', subject: `teams/${name}`, after: { run: run.id } }, ctx)
  const within = { ...ctx, signal: AbortSignal.any([ctx.signal, leaving]) }
  const failed = () => ({ type: 'end', run_id: run.id, status: 'running', result: null, error: null, duration_ms: 0 })
  try {
    yield* framesOf(teamEvents(workflows, name, run, within), { record: event => event, failed }, within)
  } catch (error) {
    if (!leaving.aborted) throw error
  }
  if (leaving.aborted) yield `${retryField()}\n`
}

async function* teamEvents(
  workflows: Workflows,
  team: string,
  { id, createdAt }: Run,
  ctx: CallContext
): AsyncGenerator<StreamEvent> {
  // a team that is started by itself has the id of its run
  yield { type: 'start', team, id, run_id: id, at: timeRecord(createdAt) }
  for await (const event of workflows.events(id, 0, ctx)) {
    const member = memberEvent(event)
    if (member) yield member
  }
  ctx.signal.throwIfAborted()
  const { status, result = null, error, executionMs } = await workflows.get(id, ctx)
  const shown = error ? { code: error.code, message: error.message } : null
  yield { type: 'end', run_id: id, status, result, error: shown, duration_ms: Math.round(executionMs) }
}

const STATUS: Partial<Record<RunEvent['type'], string>> = {
  node_started: 'started',
  node_progress: 'progress',
  node_retrying: 'retrying',
  node_completed: 'completed',
  node_failed: 'failed',
  node_cancelled: 'cancelled',
}

/** Steps of members are inside the step of the team. */
function memberEvent({ type, step, node, at, data }: RunEvent): StreamEvent | undefined {
  const status = STATUS[type]
  if (status === undefined || node === undefined || !step?.includes('/')) return undefined
  const [, round] = ROUND.exec(step) ?? []
  return {
    type: 'member',
    member: node,
    status,
    step,
    round: round === undefined ? null : Number(round),
    at: timeRecord(at),
    data: data as { [key: string]: Json },
  }
}

/** `team/2-3-ann/ann`: the second round. */
const ROUND = /\/(\d+)-\d+-[a-z0-9_]+(?:\/|$)/

const infoOf = ({ name, description, formation, source, problems = [] }: TeamInfo) => ({
  name,
  description: description ?? null,
  formation: formation ?? null,
  source,
  problems: problems.map(problemRecord),
})

const memberRecord = ([name, { role, goal, lead, profile, mode, tools, budget }]: [string, TeamMember]) => ({
  name,
  role,
  goal,
  lead: lead ?? false,
  profile: profile ?? null,
  mode: mode ?? null,
  tools: tools ? [...tools] : null,
  budget: budget ?? null,
})
