import type { CallContext } from '@svc/core'
import type {
  Budget,
  Graph,
  Json,
  Run,
  TeamBudget,
  TeamDefinition,
  TeamInfo,
  TeamOrder,
  Teams,
  WorkflowDefinition,
  Workflows,
} from '@svc/core/contracts'
import { budgetProblems } from './definition.ts'
import { budgetInvalid, taskInvalid } from './errors.ts'
import type { TeamLibrary } from './library.ts'
import { stricter } from './team-budget.ts'
import { teamOf } from './team.ts'
import type { TeamRuns } from './team-runs.ts'

/** Starts a team for a model. The members of the team cannot delegate again. */
export type Delegation = (team: string, task: string, ctx: CallContext) => Promise<Run>

export function createTeams(
  library: TeamLibrary,
  workflows: Workflows,
  runs: TeamRuns
): { readonly service: Teams; readonly delegate: Delegation } {
  const readyFor = async ({ team, budget }: Omit<TeamOrder, 'task'>): Promise<TeamDefinition> => {
    const [problem] = budget === undefined ? [] : budgetProblems(budget)
    if (problem) throw budgetInvalid(problem)
    const { definition } = await library.ready(team)
    return budget === undefined ? definition : { ...definition, budget: stricter(definition.budget, budget) }
  }
  const start = async (
    order: Omit<TeamOrder, 'task'>,
    input: { readonly task: Json; readonly delegated?: true },
    ctx: CallContext
  ) => {
    const definition = await readyFor(order)
    const { idempotencyKey } = ctx
    const request = { workflow: workflowOf(definition), input, ...(idempotencyKey ? { idempotencyKey } : {}) }
    const run = await workflows.start(request, ctx)
    await runs.begin(run, teamOf(definition), input.task, ctx)
    return run
  }
  const service: Teams = {
    list: async () => (await library.all()).map(infoOf),
    async show(team) {
      const known = await library.find(team)
      return { info: infoOf(known), definition: known.definition }
    },
    body: async ({ task, ...order }) => bodyOf(await readyFor(order), checked(task)),
    start: async ({ task, ...order }, ctx) => start(order, { task: checked(task) }, ctx),
    runs: (query, ctx) => runs.list(query, ctx),
    run: (id, ctx) => runs.tree(id, ctx),
  }
  return { service, delegate: async (team, task, ctx) => start({ team }, { task: checked(task), delegated: true }, ctx) }
}

/** Throws INVALID_VALUE for a blank task. */
function checked(task: Json): Json {
  if (task === null || (typeof task === 'string' && task.trim() === '')) throw taskInvalid()
  return task
}

function infoOf({ name, source, problems, ...rest }: Awaited<ReturnType<TeamLibrary['all']>>[number]): TeamInfo {
  const { description, formation, members } = (rest as { readonly definition?: Partial<TeamDefinition> }).definition ?? {}
  return {
    name,
    ...(description === undefined ? {} : { description }),
    ...(formation === undefined ? {} : { formation }),
    source,
    members: Object.keys(members ?? {}),
    ...(problems.length > 0 ? { problems } : {}),
  }
}

/** The node type of a team in a workflow. */
export const TEAM_NODE = 'team_work'

/** A body that runs a team on a task: a single node with the budget of the team. */
const bodyOf = (team: TeamDefinition, task: Json): Graph => graphOf(team, written(task))

/** A workflow that runs a team. It is the same for all tasks. */
const workflowOf = (team: TeamDefinition): WorkflowDefinition => ({
  name: `team_${team.name}`,
  ...(team.description === undefined ? {} : { description: team.description }),
  inputs: {
    type: 'object',
    properties: { task: {}, delegated: { type: 'boolean', description: 'Whether a model delegated the task' } },
    required: ['task'],
    additionalProperties: false,
  },
  ...graphOf(team, '${{ input.task }}'),
})

function graphOf(team: TeamDefinition, task: Json): Graph {
  const node = { type: TEAM_NODE, team: written(team as unknown as Json), task }
  return { nodes: { team: node }, ...budgetOf(team.budget) }
}

/** The part of the budget that the workflow holds. The node of the team holds the rest. */
function budgetOf(budget: TeamBudget | undefined): { readonly budget?: Budget } {
  if (!budget) return {}
  const { time: _time, rounds: _rounds, ...shared } = budget
  return Object.keys(shared).length > 0 ? { budget: shared } : {}
}

/** Escapes a value for a definition. Text that looks like an expression becomes an expression that returns the text. */
function written(value: Json): Json {
  if (typeof value === 'string') return value.includes('${{') ? `\${{ ${JSON.stringify(value.toWellFormed())} }}` : value
  if (Array.isArray(value)) return value.map(written)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, written(item!)]))
}
