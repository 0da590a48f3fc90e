import type { Recommend, Recommendation, RecommendedTeam, RecommendedWorkflow, Route } from '@svc/core/contracts'
import { INTEGER, list, nullable, NUMBER, OBJECT, object, ok, STRING, text, words } from '@svc/api-types'

const query = object(
  {
    task_type: text('A task type or a short label, like code_review; at most 200 characters.'),
    complexity: text('trivial, low, medium, high, extreme; or simple, moderate, complex, very_high.'),
    mode: text('build (the default), plan, review, delegate, explore.'),
    vertical: text('Limits the recommendations to this vertical.'),
  },
  ['task_type', 'complexity']
)

const team = object({
  team_name: STRING,
  confidence: NUMBER,
  reason: STRING,
  formation: STRING,
  suggested_budget: nullable('integer'),
  role_distribution: OBJECT,
  source: STRING,
})
const workflow = object({
  workflow_name: STRING,
  confidence: NUMBER,
  reason: STRING,
  trigger_condition: nullable('string'),
  estimated_steps: nullable('integer'),
})
const recommendation = object({
  vertical: STRING,
  action: words('none', 'suggest', 'auto_spawn', 'require_approval'),
  primary_team: { oneOf: [team, { type: 'null' }] },
  primary_workflow: { oneOf: [workflow, { type: 'null' }] },
})
const answer = object({
  task_type: STRING,
  complexity: STRING,
  mode: STRING,
  vertical: nullable('string'),
  count: INTEGER,
  recommendations: list(recommendation),
})

/** The route that recommends teams and workflows for a task. */
export const createRecommendRoutes = (recommend: Recommend): Record<string, Route> => ({
  recommend: {
    method: 'GET',
    path: '/api/v1/capabilities/recommend',
    summary: 'Recommend teams and workflows for a task',
    scope: 'read',
    query,
    responses: ok('One entry for each vertical with a recommendation, highest confidence first.', answer),
    async handle({ query: { task_type = '', complexity = '', mode = 'build', vertical } }, ctx) {
      const task = { taskType: task_type, complexity, mode, ...(vertical === undefined ? {} : { vertical }) }
      const recommendations = (await recommend.recommend(task, ctx)).map(recommendationWire)
      const count = recommendations.length
      return { body: { task_type, complexity, mode, vertical: vertical ?? null, count, recommendations } }
    },
  },
})

/** Converts a recommendation to the snake_case of the API. */
const recommendationWire = ({ vertical, action, team, workflow }: Recommendation) => ({
  vertical,
  action,
  primary_team: team && teamWire(team),
  primary_workflow: workflow && workflowWire(workflow),
})

const teamWire = ({ name, confidence, reason, formation, suggestedBudget, roles, source }: RecommendedTeam) => ({
  team_name: name,
  confidence,
  reason,
  formation,
  suggested_budget: suggestedBudget,
  role_distribution: roles,
  source,
})

const workflowWire = ({ name, confidence, reason, trigger, steps }: RecommendedWorkflow) => ({
  workflow_name: name,
  confidence,
  reason,
  trigger_condition: trigger,
  estimated_steps: steps,
})
