import { type ChildOutcome, type ChildSpec, type Json, type TeamDefinition, Tools, WorkflowNodes } from '@svc/core/contracts'
import { nodeKit, toolKit } from '@svc/testing'
import { team } from './support/team.ts'
import { openTeamHost, sleeping } from './support/host.ts'

/** What a member says to any question: a draft, a plan, a vote and a verdict in one. */
const word = ({ vars }: ChildSpec): ChildOutcome => ({
  status: 'completed',
  output: {
    text: `so be it: ${JSON.stringify(vars).length}`,
    data: { assignments: [], done: true, answer: 'so', vote: 'ann', reason: 'so', approved: true, reasons: [] },
    tokens: 10,
    tools_used: [],
  },
})
const json = (definition: TeamDefinition) => definition as unknown as Json
const FORMATIONS = ['sequential', 'parallel', 'hierarchical', 'pipeline', 'consensus', 'reflection'] as const

describe('the node team_work', () => {
  const open = async () => {
    const host = await openTeamHost({})
    return { node: host.slot(WorkflowNodes).get('team_work')!, close: () => host.close() }
  }
  const samples = {
    good: FORMATIONS.map(formation => ({
      settings: { team: json(team(formation, ['ann', 'bob'])), task: 'a boat' },
      child: word,
    })),
    bad: [
      { settings: { team: json(team('pipeline', ['ann', 'bob'])) } },
      { settings: { team: 'crew', task: 'a boat' } },
      { settings: { team: json(team('reflection', ['ann', 'bob', 'cy'])), task: 'a boat' }, code: 'TEAM_INVALID' },
    ],
  }
  for (const testCase of nodeKit(open, samples)) it(testCase.title, testCase.run)
})

describe('delegate, as any tool', () => {
  const open = async () => {
    const host = await openTeamHost({
      teams: { crew: team('pipeline', ['ann', 'bob']) },
      script: asked => (asked.prompt === 'sleep' ? sleeping(asked) : 'Done.'),
    })
    return { tool: host.slot(Tools).get('delegate')!, name: 'delegate', close: () => host.close() }
  }
  const samples = {
    good: [{ args: { team: 'crew', task: 'a boat' } }],
    bad: [{ args: { team: 'crew' } }, { args: { team: 'boat', task: 'a boat' }, message: /team "boat" does not exist/ }],
    slow: { args: { team: 'crew', task: 'sleep' } },
    concurrent: 10,
  }
  for (const testCase of toolKit(open, samples)) it(testCase.title, testCase.run)
})
