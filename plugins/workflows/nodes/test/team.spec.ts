import { svcError } from '@svc/core'
import { type Json, Teams } from '@svc/core/contracts'
import { service } from '@svc/testing'
import { expect } from 'chai'
import { codeThrown, openNode, provesNode, nodeSteps } from './support/host.ts'

const body = (task: unknown) => ({ nodes: { ask: { type: 'transform', value: task } } })
const none = async () => Promise.reject(new Error('not asked for'))
const teams: Teams = {
  list: async () => [],
  show: none,
  start: none,
  runs: none,
  run: none,
  async body({ team, task, budget }) {
    if (team !== 'writers') throw svcError('TEAM_UNKNOWN', `team "${team}"`)
    return body(budget ? [task, budget as Json] : task)
  },
}

describe('a node team', () => {
  provesNode(
    'team',
    {
      good: [
        {
          settings: { team: 'writers', task: 'a poem' },
          child: item => ({ status: 'completed', output: item.body as never }),
          expect: output => expect(output).to.deep.equal(body('a poem')),
        },
        {
          settings: { team: 'writers', task: 'a poem', budget: { rounds: 2 } },
          child: item => ({ status: 'completed', output: item.body as never }),
          expect: output => expect(output).to.deep.equal(body(['a poem', { rounds: 2 }])),
        },
      ],
      bad: [{ settings: { team: 'writers' } }, { settings: { team: 'nobody', task: 1 }, code: 'TEAM_UNKNOWN' }],
    },
    { give: [service(Teams, teams)] }
  )

  it('says what to add where there are no teams', async () => {
    await using node = await openNode('team')
    expect((await codeThrown(nodeSteps(node, { settings: { team: 'writers', task: 1 } }))).code).to.equal('SERVICE_MISSING')
  })
})
