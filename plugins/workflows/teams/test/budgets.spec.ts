import { codeOf, type SvcError } from '@svc/core'
import { type Formation, type Run, type TeamBudget, type TeamDefinition, Teams, Tools, Workflows } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import type { TeamResult } from '../src/team-node.ts'
import { ctx, members, openTeamHost, type Script, sleeping, ToolRequest } from './support/host.ts'
import { team } from './support/team.ts'

const FORMATIONS = ['sequential', 'pipeline', 'parallel', 'hierarchical', 'consensus', 'reflection'] as const
/** A reply of the scripted model: 4 tokens in and 6 out. */
const [PER_WORD, TOKEN_PRICE] = [10, 0.1]
const PRICED = { models: { prices: { 'stage/actor': { input: TOKEN_PRICE * 1e6, output: TOKEN_PRICE * 1e6 } } } }

/** A team of this formation that does not end before its rounds are over. */
function endless(formation: Formation): TeamDefinition {
  const names = formation === 'reflection' ? ['ann', 'bob'] : ['ann', 'bob', 'cy']
  const rounds = ['hierarchical', 'consensus', 'reflection'].includes(formation) ? { rounds: 5 } : {}
  const crew = team(formation, names, rounds)
  if (formation !== 'parallel') return crew
  return { ...crew, members: { ...crew.members, cy: { ...crew.members.cy!, lead: true } } }
}

/** Plans, votes and verdicts that always lead to another round. */
const onward =
  (formation: Formation): Script =>
  ({ member, isData }) => {
    if (!isData) return `word of ${member}`
    if (formation === 'hierarchical') return { assignments: [{ member: 'bob', task: 'a part' }], done: false, answer: '' }
    return formation === 'consensus' ? { vote: member, reason: 'mine' } : { approved: false, reasons: ['more'] }
  }

async function stoppedRun(definition: TeamDefinition, script: Script, budget?: TeamBudget) {
  let calls = 0
  const counted: Script = asked => {
    calls += 1
    return script(asked)
  }
  const plugins = ['models']
  await using host = await openTeamHost({ teams: { crew: definition }, script: counted, plugins, config: PRICED })
  const order = { team: 'crew', task: 'Build a boat.', ...(budget ? { budget } : {}) }
  const { id } = await host.service(Teams).start(order, ctx)
  const run = await host.service(Workflows).settled(id, 15_000, ctx)
  return { run, calls, result: run.result as unknown as TeamResult, tree: await host.service(Teams).run(id, ctx) }
}

/** What each partial result says. */
function expectPartial({ run, result, tree }: Awaited<ReturnType<typeof stoppedRun>>, budget: keyof TeamBudget) {
  expect(run.error).to.equal(undefined)
  expect(run.status).to.equal('completed')
  expect(result.partial, JSON.stringify(result)).to.have.property('budget', budget)
  expect(result.partial!.reason).to.be.a('string').with.length.greaterThan(10)
  const cut = Object.values(result.members).filter(({ status, stopped_by: by }) => status !== 'completed' && by === budget)
  const ended = Object.values(result.members).filter(({ status }) => status === 'completed')
  expect(cut.length + ended.length).to.equal(Object.keys(result.members).length)
  expect(tree).to.include({ status: 'partial', run: run.id, team: 'crew' })
  expect(tree.stop).to.deep.equal(result.partial)
  expect(tree.spent.tokens).to.equal(result.spent.tokens)
  expect(run.spent.tokens).to.equal(result.spent.tokens)
  expect(tree.members.map(({ status }) => status)).to.deep.equal(Object.values(result.members).map(({ status }) => status))
}

describe('a budget of a team', () => {
  for (const formation of FORMATIONS) {
    it(`of tokens stops the formation ${formation}, and no call goes over it`, async () => {
      const stopped = await stoppedRun({ ...endless(formation), budget: { tokens: 13 } }, onward(formation))
      expectPartial(stopped, 'tokens')
      expect(stopped.result.spent.tokens).to.be.most(13)
      expect(stopped.calls * 5).to.be.most(13)
    })

    it(`of costs stops the formation ${formation}, and no call goes over it`, async () => {
      const cost = 13 * TOKEN_PRICE
      const stopped = await stoppedRun(endless(formation), onward(formation), { cost })
      expectPartial(stopped, 'cost')
      expect(stopped.result.spent.cost ?? 0).to.be.most(cost + 1e-9)
      expect(stopped.result.spent.cost ?? 0).to.be.closeTo(stopped.result.spent.tokens * TOKEN_PRICE, 1e-9)
      expect(stopped.tree.spent.cost).to.equal(stopped.result.spent.cost)
    })

    it(`of time stops the formation ${formation} while its members work`, async () => {
      let answered = 0
      const script: Script = asked => (answered++ === 0 ? onward(formation)(asked) : sleeping(asked))
      const stopped = await stoppedRun(endless(formation), script, { time: '700ms' })
      expectPartial(stopped, 'time')
      expect(stopped.result.spent.time_ms).to.be.within(680, 10_000)
      expect(stopped.result.spent.tokens).to.be.least(PER_WORD)
    })

    it(`of rounds stops the formation ${formation} after its round`, async () => {
      const stopped = await stoppedRun({ ...endless(formation), budget: { rounds: 1 } }, onward(formation))
      expectPartial(stopped, 'rounds')
      expect(stopped.result.spent.rounds).to.equal(1)
      expect(stopped.tree.tree!.map(({ round }) => round)).to.deep.equal([1])
      const turns = { sequential: 1, pipeline: 1, parallel: 2, hierarchical: 2, consensus: 6, reflection: 2 }
      expect(stopped.calls).to.equal(turns[formation])
      expect(stopped.result.answer).to.equal(null)
      const said = stopped.tree.tree!.flatMap(({ messages }) => messages.map(({ member }) => member))
      expect(Object.keys(stopped.result.positions!)).to.have.members([...new Set(said)])
    })
  }

  it('holds as the stricter of that of the team and that of the call', async () => {
    const own = { ...endless('sequential'), budget: { tokens: 1_000, time: '20s', rounds: 2 } }
    const { result } = await stoppedRun(own, onward('sequential'), { tokens: 13, time: '5m', rounds: 3, cost: 100 })
    expect(result.budget).to.deep.equal({ tokens: 13, time: '20s', rounds: 2, cost: 100 })
    expect(result.partial).to.include({ budget: 'tokens' })
  })

  it('does not stop a team that ends within it', async () => {
    const budget = { tokens: 30, cost: 3, time: '5m', rounds: 3 }
    const { result, tree } = await stoppedRun(endless('sequential'), onward('sequential'), budget)
    expect(result.partial).to.equal(undefined)
    expect(result.answer).to.equal('word of cy')
    expect(tree).to.include({ status: 'completed' }).and.not.have.property('stop')
  })

  it('that only stops a member leaves the answer, and the result says what is missing', async () => {
    const crew = endless('parallel')
    const bob = { ...crew.members.bob!, budget: { tokens: 4 } }
    const { result } = await stoppedRun({ ...crew, members: { ...crew.members, bob } }, onward('parallel'))
    expect(result).to.include({ answer: 'word of cy' })
    expect(result.partial).to.include({ budget: 'tokens' })
    expect(result.partial!.reason).to.match(/^bob: /)
    expect(result.members.bob).to.include({ status: 'stopped', stopped_by: 'tokens' })
    expect(result.members.ann).to.deep.equal({ status: 'completed' })
  })

  it('counts what a member used that failed', async () => {
    const look = item(Tools, 'look', {
      description: 'Looks',
      category: 'test',
      effects: ['read'],
      parameters: { type: 'object', properties: {} },
      call: async () => ({ content: [{ type: 'text', text: 'a boat' }] }),
    })
    const script: Script = ({ member, results }) => {
      if (member !== 'ann') return 'Done.'
      return results.length === 0 ? new ToolRequest('look') : new Error('it broke')
    }
    await using host = await openTeamHost({ teams: { crew: endless('parallel') }, script, give: [look] })
    const { id } = await host.service(Teams).start({ team: 'crew', task: 'Build.' }, ctx)
    const run = await host.service(Workflows).settled(id, 15_000, ctx)
    expect(run.result).to.have.nested.property('members.ann.status', 'failed')
    expect(run.result).to.not.have.property('partial')
    expect(run.result).to.have.nested.property('spent.tokens', 3 * PER_WORD)
    expect(run.spent.tokens).to.equal(3 * PER_WORD)
  })

  it('of costs refuses a model without a price, by name', async () => {
    await using host = await openTeamHost({ teams: { crew: endless('sequential') }, plugins: ['models'] })
    const { id } = await host.service(Teams).start({ team: 'crew', task: 'Build.', budget: { cost: 1 } }, ctx)
    const { error } = await host.service(Workflows).settled(id, 15_000, ctx)
    expect(error).to.include({ code: 'TEAM_MEMBER_FAILED' })
    expect(error!.details.error).to.include({ code: 'PRICE_UNKNOWN' })
    expect(error!.message).to.include('stage/actor')
  })

  it('of a step of a workflow holds within that of the workflow', async () => {
    await using host = await openTeamHost({ teams: { crew: endless('sequential') }, script: onward('sequential') })
    const ask = { type: 'team', team: 'crew', task: 'Build.', budget: { rounds: 2 } }
    const start = (nodes: object, more = {}): Promise<Run> =>
      host.service(Workflows).start({ workflow: { name: 'boats', nodes: nodes as never, ...more } }, ctx)
    const results = await Promise.all(
      [await start({ ask }), await start({ ask }, { budget: { tokens: 13 } })].map(({ id }) =>
        host.service(Workflows).settled(id, 15_000, ctx)
      )
    )
    expect(results[0]!.result).to.have.nested.property('partial.budget', 'rounds')
    expect(results[1]!.result).to.have.nested.property('partial.budget', 'tokens')
    expect(results[1]!.spent.tokens).to.be.most(13)
  })

  it('is refused where it is wrong, in the call with its field and in a definition', async () => {
    const bad: readonly (readonly [unknown, string])[] = [
      [{ tokens: -1 }, 'budget.tokens'],
      [{ tokens: 1.5 }, 'budget.tokens'],
      [{ tokens: '9' }, 'budget.tokens'],
      [{ cost: -0.1 }, 'budget.cost'],
      [{ cost: Number.NaN }, 'budget.cost'],
      [{ time: 'soon' }, 'budget.time'],
      [{ time: 30 }, 'budget.time'],
      [{ rounds: 0 }, 'budget.rounds'],
      [{ rounds: 1e9 }, 'budget.rounds'],
      [{ money: 1 }, 'budget.money'],
      [[], 'budget'],
      [7, 'budget'],
    ]
    await using host = await openTeamHost({ teams: { crew: endless('sequential') } })
    for (const [budget, field] of bad) {
      const order = { team: 'crew', task: 'Build.', budget: budget as TeamBudget }
      const error = await host
        .service(Teams)
        .start(order, ctx)
        .then(
          () => undefined,
          (thrown: SvcError) => thrown
        )
      expect(codeOf(error), JSON.stringify(budget)).to.equal('INVALID_VALUE')
      expect(error!.details.field).to.equal(field)
      const wrong = { ...endless('sequential'), name: 'wrong', budget: budget as TeamBudget }
      await using other = await openTeamHost({ teams: { wrong } })
      const refused = await other
        .service(Teams)
        .start({ team: 'wrong', task: 'Build.' }, ctx)
        .then(() => undefined, codeOf)
      expect(refused, JSON.stringify(budget)).to.equal('TEAM_INVALID')
    }
    expect((await host.service(Teams).runs({ limit: 10 }, ctx)).runs).to.deep.equal([])
  })

  it('is named where a member is wrong: only a team has time and rounds', async () => {
    const crew = endless('sequential')
    const ann = { ...members('ann').ann!, budget: { time: '5s' } as TeamBudget }
    await using host = await openTeamHost({ teams: { crew: { ...crew, members: { ...crew.members, ann } } } })
    const [info] = await host.service(Teams).list(ctx)
    expect(info!.problems!.map(({ path }) => path)).to.deep.equal(['members.ann.budget.time'])
  })
})
