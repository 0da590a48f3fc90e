import type { Recommendation, RecommendedTeam, RecommendedWorkflow } from '@svc/core/contracts'

/** A recommendation as the wire has it. */
export const recommendationWire = ({ vertical, action, team, workflow }: Recommendation) => ({
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
