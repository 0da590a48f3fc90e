import type { Teams, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { outputOf } from './children.ts'
import { missingService } from './errors.ts'

/** Makes the node that gives a task to a team. */
export const createTeam = (teams: Teams | undefined): WorkflowNode => ({
  description: 'Gives a task to a team. It answers what the team made of it.',
  settings: objectOf({
    team: { type: 'string', minLength: 1, description: 'The name of the team' },
    task: { description: 'What it is to do: a text, or data' },
  }),
  names: { team: 'team' },
  repeatable: true,
  async *run({ settings, children }, ctx) {
    if (children) return yield { type: 'output', output: outputOf(children.team) }
    if (!teams) throw missingService('team', 'teams', '@svc/plugin-teams')
    const body = await teams.body(settings.team as string, settings.task ?? null, ctx)
    yield { type: 'fork', join: 'all', children: [{ key: 'team', body }] }
  },
})
