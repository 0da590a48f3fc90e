import { VERTICALS } from '../../../support/verticals.ts'
import { any, exact, exchange, get, ok } from '../../exchange.ts'

export default exchange({
  rule: 'recommends a team and a workflow for a task, from each vertical that fits or from the one that is asked for, with the whole record',
  source: 'http-api.md "Recommendation response"; decisions.md 1, recommendation records',
  together: 'parts',
  config: { plugins: VERTICALS },
  steps: [
    {
      request: get('/api/v1/capabilities/recommend?task_type=code_review&complexity=high'),
      expect: ok(
        exact({
          task_type: 'code_review',
          complexity: 'high',
          mode: 'build',
          vertical: null,
          count: 1,
          recommendations: [
            exact({
              vertical: 'coding',
              action: 'auto_spawn',
              primary_team: exact({
                team_name: 'review_board',
                confidence: 1,
                reason: 'the task matches the pattern "code review"',
                formation: 'parallel',
                suggested_budget: 45,
                role_distribution: exact({
                  'reviewer for correctness': 1,
                  'reviewer for security': 1,
                  'reviewer for tests': 1,
                  'chair of the review': 1,
                }),
                source: '@svc/plugin-vertical-coding',
              }),
              primary_workflow: exact({
                workflow_name: 'review_change',
                confidence: 1,
                reason: 'the task matches the pattern "code review"',
                trigger_condition: 'code review',
                estimated_steps: 8,
              }),
            }),
          ],
        })
      ),
    },
    {
      request: get('/api/v1/capabilities/recommend?task_type=postmortem&complexity=low&mode=plan&vertical=devops'),
      expect: ok({
        vertical: 'devops',
        mode: 'plan',
        count: 1,
        recommendations: [{ action: 'none', primary_team: { team_name: 'postmortem_round', formation: 'sequential' } }],
      }),
    },
    {
      request: get('/api/v1/capabilities/recommend?task_type=changelog&complexity=very_high'),
      expect: ok({
        complexity: 'very_high',
        recommendations: [
          { primary_team: null, primary_workflow: { workflow_name: 'write_release_notes', confidence: any('number') } },
        ],
      }),
    },
  ],
})
