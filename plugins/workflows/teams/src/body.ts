import type { Budget, Graph, Json, TeamDefinition, WorkflowDefinition } from '@svc/core/contracts'

/** The type of the node that a team is in a workflow. */
export const TEAM_NODE = 'team_work'

/** A team at a task as a body of a workflow: one node, which asks the members; the budget is that of all of them. */
export const bodyOf = (team: TeamDefinition, task: Json): Graph => graphOf(team, written(task))

/** A team as a workflow of its own, the same for all of its tasks. */
export const workflowOf = (team: TeamDefinition): WorkflowDefinition => ({
  name: `team_${team.name}`,
  ...(team.description === undefined ? {} : { description: team.description }),
  inputs: {
    type: 'object',
    properties: { task: {}, delegated: { type: 'boolean', description: 'A model has given the task, not a person' } },
    required: ['task'],
    additionalProperties: false,
  },
  ...graphOf(team, '${{ input.task }}'),
})

function graphOf(team: TeamDefinition, task: Json): Graph {
  const node = { type: TEAM_NODE, team: written(team as unknown as Json), task }
  return { nodes: { team: node }, ...budgetOf(team.budget) }
}

const budgetOf = (budget: Budget | undefined) => (budget ? { budget } : {})

/** A value as a definition holds it that means just this: a text that looks like an expression becomes one that answers this text. */
function written(value: Json): Json {
  if (typeof value === 'string') return value.includes('${{') ? `\${{ ${JSON.stringify(value.toWellFormed())} }}` : value
  if (Array.isArray(value)) return value.map(written)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, written(one!)]))
}
