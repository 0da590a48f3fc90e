import { INTEGER, list, nullable, OBJECT, object, ok, STRING, text, TIME, words } from '@svc/api-types'
import type { CallContext, JsonSchema } from '@svc/core'
import type {
  Json,
  PublicError,
  Route,
  Run,
  RunEvent,
  RunUsage,
  TeamBudget,
  TeamInfo,
  TeamMember,
  TeamMessage,
  TeamRun,
  TeamRunInfo,
  TeamRunStatus,
  Teams,
  Workflows,
} from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { retryField } from '@svc/provider-http/sse'
import { framesOf, type StreamEvent } from '../frames.ts'
import { PROBLEM, problemRecord, timeRecord } from '../records.ts'

const PATH = '/api/v1/teams'

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
const BUDGET: JsonSchema = {
  type: ['object', 'null'],
  description: 'Limits: tool_calls, tokens, cost; of a team also time, rounds.',
}
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
    object({ type: { const: 'start' }, team: STRING, run_id: STRING, at: STRING }),
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

const STATUSES = ['running', 'completed', 'partial', 'failed', 'cancelled'] as const satisfies readonly TeamRunStatus[]
const LIMIT: JsonSchema = { type: ['string', 'null'], enum: ['tokens', 'cost', 'time', 'rounds', null] }
const SPENT = object({
  tokens: INTEGER,
  tool_calls: INTEGER,
  cost: { ...(nullable('number') as object), description: 'Null if no model had a price.' },
})
const ERROR: JsonSchema = { type: ['object', 'null'], properties: { code: STRING, message: STRING } }
const runFields = {
  id: STRING,
  run_id: { ...(STRING as object), description: 'The workflow run, for /api/v1/workflows.' },
  step: STRING,
  workflow: STRING,
  team: STRING,
  formation: STRING,
  owner: STRING,
  status: {
    ...(words(...STATUSES) as object),
    description: 'partial: a budget stopped the team or one of its members.',
  },
  task: { ...(STRING as object), description: 'The beginning of the task.' },
  budget: BUDGET,
  rounds: { ...(INTEGER as object), description: 'Rounds that began.' },
  spent: SPENT,
  stop: {
    type: ['object', 'null'],
    properties: { budget: LIMIT, reason: STRING },
    description: 'Why the team, or the first of its members, was stopped.',
  },
  error: ERROR,
  started_at: TIME,
  finished_at: { type: ['string', 'null'], format: 'date-time' },
} as const satisfies Record<string, JsonSchema>
const TEAM_RUN: JsonSchema = { ...(object(runFields) as object), title: 'TeamRun' }
const MESSAGE: JsonSchema = {
  ...(object({
    member: STRING,
    step: STRING,
    status: words('running', 'completed', 'failed', 'stopped', 'cancelled'),
    prompt: STRING,
    reply: nullable('string'),
    data: { description: 'The reply as data, if it had to be.' },
    shortened: {
      type: 'boolean',
      description: 'A text of more than 65,536 characters was cut. The step of the run has the whole.',
    },
    model: nullable('string'),
    attempts: INTEGER,
    tools: list(object({ tool: STRING, success: { type: 'boolean' }, error: nullable('string') })),
    spent: SPENT,
    error: ERROR,
    started_at: TIME,
    finished_at: { type: ['string', 'null'], format: 'date-time' },
  }) as object),
  title: 'TeamMessage',
}
const TREE: JsonSchema = {
  ...(object({
    ...runFields,
    members: list(
      object({
        name: STRING,
        role: STRING,
        lead: { type: 'boolean' },
        status: words('idle', 'running', 'completed', 'failed', 'stopped', 'cancelled'),
        messages: INTEGER,
        spent: SPENT,
        stopped_by: { ...(LIMIT as object), description: 'The budget that stopped it, or because of which it was not asked.' },
        error: ERROR,
      })
    ),
    tree: {
      type: ['array', 'null'],
      items: object({ round: INTEGER, messages: list(MESSAGE) }),
      description: 'The rounds with their messages. Null when the workflow run was deleted.',
    },
  }) as object),
  title: 'TeamRunTree',
}
const runsQuery: JsonSchema = {
  ...(object(
    {
      team: { ...(text('Only runs of this team.') as object), maxLength: 100 },
      status: words(...STATUSES),
      limit: { type: 'integer', minimum: 1, maximum: 200, default: 50 },
      cursor: text('The next_cursor of the previous page.'),
    },
    []
  ) as object),
}

/** Routes for teams. A run of a team is a workflow run: it continues when its reader leaves. */
export const createTeamRoutes = (services: TeamServices, publish: Publish): Record<string, Route> => ({
  teams: {
    method: 'GET',
    path: PATH,
    summary: 'List teams',
    scope: 'read',
    responses: ok('The teams.', object({ teams: list(TEAM) })),
    async handle(_request, ctx) {
      const teams = await services.teams.list(ctx)
      return { body: { teams: teams.map(info => ({ ...infoOf(info), members: [...info.members] })) } }
    },
  },
  ...runRoutes(services.teams),
  team: {
    method: 'GET',
    path: `${PATH}/:name`,
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
    path: `${PATH}/:name/run`,
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

const runRoutes = (teams: Teams) =>
  ({
    team_runs: {
      method: 'GET',
      path: `${PATH}/runs`,
      summary: 'List runs of teams, the newest first',
      description:
        'Runs of POST …/run, of svc teams run, of models named team:<name>, of the tool delegate and of steps of workflows: the own, with the scope admin all. The configuration (teams.runs) limits their number and age.',
      scope: 'read',
      query: runsQuery,
      responses: ok('A page of runs.', object({ runs: list(TEAM_RUN), next_cursor: nullable('string') })),
      async handle({ query: { team, status, limit, cursor } }, ctx) {
        const given = Object.entries({ team, status, cursor }).filter(([, value]) => value !== undefined)
        const page = await teams.runs({ limit: Number(limit ?? 50), ...Object.fromEntries(given) }, ctx)
        return { body: { runs: page.runs.map(runRecord), next_cursor: page.next ?? null } }
      },
    },
    team_run_tree: {
      method: 'GET',
      path: `${PATH}/runs/:id`,
      summary: 'Read a run of a team as a tree of members, rounds, messages, tools and costs',
      scope: 'read',
      responses: ok('The run, also while it is running.', TREE),
      handle: async ({ params }, ctx) => ({ body: treeRecord(await teams.run(params.id!, ctx)) }),
    },
  }) satisfies Record<string, Route>

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
  yield { type: 'start', team, run_id: id, at: timeRecord(createdAt) }
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

const spentRecord = ({ tokens, toolCalls, cost }: RunUsage) => ({ tokens, tool_calls: toolCalls, cost: cost ?? null })
const errorRecord = (error: PublicError | undefined) => (error ? { code: error.code, message: error.message } : null)
const endRecord = (at: number | undefined) => (at === undefined ? null : timeRecord(at))

const runRecord = ({ run, budget, spent, stop, error, startedAt, finishedAt, ...same }: TeamRunInfo) => ({
  id: same.id,
  run_id: run,
  step: same.step,
  workflow: same.workflow,
  team: same.team,
  formation: same.formation,
  owner: same.owner,
  status: same.status,
  task: same.task,
  budget: budget ? { ...budget } : null,
  rounds: same.rounds,
  spent: spentRecord(spent),
  stop: stop ? { ...stop } : null,
  error: errorRecord(error),
  started_at: timeRecord(startedAt),
  finished_at: endRecord(finishedAt),
})

const treeRecord = ({ members, tree, ...info }: TeamRun) => ({
  ...runRecord(info),
  members: members.map(({ spent, stoppedBy, error, ...member }) => ({
    ...member,
    spent: spentRecord(spent),
    stopped_by: stoppedBy ?? null,
    error: errorRecord(error),
  })),
  tree: tree ? tree.map(({ round, messages }) => ({ round, messages: messages.map(messageRecord) })) : null,
})

const messageRecord = ({ reply, data, model, tools, spent, error, startedAt, finishedAt, ...message }: TeamMessage) => ({
  member: message.member,
  step: message.step,
  status: message.status,
  prompt: message.prompt,
  reply: reply ?? null,
  data: data ?? null,
  shortened: message.shortened ?? false,
  model: model ?? null,
  attempts: message.attempts,
  tools: tools.map(tool => ({ ...tool, error: tool.error ?? null })),
  spent: spentRecord(spent),
  error: errorRecord(error),
  started_at: timeRecord(startedAt),
  finished_at: endRecord(finishedAt),
})
