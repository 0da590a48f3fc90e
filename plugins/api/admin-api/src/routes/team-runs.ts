import { INTEGER, list, nullable, object, ok, STRING, text, TIME, words } from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import type { PublicError, Route, RunUsage, TeamMessage, TeamRun, TeamRunInfo, TeamRunStatus, Teams } from '@svc/core/contracts'
import { timeRecord } from '../records.ts'

export const TEAMS_PATH = '/api/v1/teams'

export const BUDGET: JsonSchema = {
  type: ['object', 'null'],
  description: 'Limits: tool_calls, tokens, cost; of a team also time, rounds.',
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

/** The stored runs of teams. */
export const teamRunRoutes = (teams: Teams) =>
  ({
    team_runs: {
      method: 'GET',
      path: `${TEAMS_PATH}/runs`,
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
      path: `${TEAMS_PATH}/runs/:id`,
      summary: 'Read a run of a team as a tree of members, rounds, messages, tools and costs',
      scope: 'read',
      responses: ok('The run, also while it is running.', TREE),
      handle: async ({ params }, ctx) => ({ body: treeRecord(await teams.run(params.id!, ctx)) }),
    },
  }) satisfies Record<string, Route>

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
