import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Budget, type Json, type TeamDefinition, type Tool, Tools, Teams, Workflows } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import type { TeamResult } from '../src/team-node.ts'
import { members, openTeamHost, ran, type Script, sleeping, ToolRequest, ctx, worked } from './support/host.ts'

const crew = (
  formation: TeamDefinition['formation'],
  names: readonly string[],
  more: Partial<TeamDefinition> = {}
): Record<string, TeamDefinition> => ({
  crew: { name: 'crew', formation, members: members(...names), ...more },
})

/** A tool that counts its calls. */
function counter() {
  const counted = { calls: 0 }
  const tool: Tool = {
    description: 'Counts how often it is called',
    category: 'test',
    effects: ['read'],
    parameters: { type: 'object', properties: {} },
    async call() {
      counted.calls++
      return { content: [{ type: 'text', text: 'counted' }] }
    },
  }
  return { counted, gift: item(Tools, 'count', tool) }
}
const PER_WORD = 10

describe('the budget of a team', () => {
  it('is shared by members that work at once, and spent to the last token and no further', async () => {
    await using host = await openTeamHost({ teams: crew('parallel', ['ann', 'bob', 'cy', 'dee'], { budget: { tokens: 35 } }) })
    const run = await ran(host, 'crew')
    expect(run.status).to.equal('completed')
    expect(run.spent.tokens).to.equal(35)
    expect(run.result).to.have.nested.property('spent.tokens', 35)
  })

  it('that no member can work with stops the team before a model is called, and reports each member', async () => {
    await using host = await openTeamHost({ teams: crew('parallel', ['ann', 'bob', 'cy'], { budget: { tokens: 11 } }) })
    const run = await ran(host, 'crew')
    const { answer, partial, members: reported } = run.result as unknown as TeamResult
    expect(run.status).to.equal('completed')
    expect(answer).to.equal(null)
    expect(partial).to.include({ budget: 'tokens' })
    for (const member of Object.values(reported)) {
      expect(member).to.include({ status: 'stopped', stopped_by: 'tokens' })
      expect(member.error).to.include({ code: 'BUDGET_EXHAUSTED' })
    }
    expect(run.spent.tokens).to.equal(0)
  })

  it('of tool calls is spent to the last call and no further', async () => {
    const { counted, gift } = counter()
    const script: Script = ({ tools }) => (tools.includes('count') ? new ToolRequest('count') : 'Counted.')
    await using host = await openTeamHost({
      teams: crew('parallel', ['ann', 'bob', 'cy'], { budget: { tool_calls: 7 } }),
      script,
      give: [gift],
    })
    const run = await ran(host, 'crew')
    expect(run.status).to.equal('completed')
    expect(counted.calls).to.equal(7)
    expect(run.spent.toolCalls).to.equal(7)
    expect(run.result).to.have.nested.property('spent.tool_calls', 7)
  })

  it('of a member holds over all that it is asked', async () => {
    const teams = crew('reflection', ['ann', 'bob'], { rounds: 5 })
    const writer = { ...teams.crew!.members.ann!, budget: { tokens: 25 } }
    const verdict = { approved: false, reasons: ['more'] }
    await using host = await openTeamHost({
      teams: { crew: { ...teams.crew!, members: { ...teams.crew!.members, ann: writer } } },
      script: ({ member }) => (member === 'ann' ? 'A draft.' : verdict),
    })
    const run = await ran(host, 'crew')
    const { answer, positions, partial, members: reported } = run.result as unknown as TeamResult
    expect({ answer, positions }).to.deep.equal({ answer: null, positions: { ann: 'A draft.', bob: JSON.stringify(verdict) } })
    expect(partial!.reason).to.match(/^ann: the turn has a budget of/)
    expect(reported.ann).to.include({ status: 'stopped', stopped_by: 'tokens' })
    expect(run.spent.tokens).to.equal(25 + 3 * PER_WORD)
  })

  it('of a member holds where it is given several things at once, and again and again', async () => {
    const both = [1, 2].map(at => ({ member: 'ann', task: `part ${at}` }))
    const { run, result } = await worked(
      led({ tokens: 25 }),
      leading(both, () => 'A part.')
    )
    expect(result.members.ann).to.have.nested.property('error.code', 'BUDGET_EXHAUSTED')
    // the lead is asked in each round, and for its answer
    expect(run.spent.tokens - 3 * PER_WORD).to.be.within(2 * PER_WORD, 25)
  })

  it('of a member holds where it fails, and is given something again', async () => {
    const script: Script = ({ results }) => (results.length === 0 ? new ToolRequest('look') : new Error('it broke'))
    const { run, result } = await worked(led({ tokens: 15 }), leading([{ member: 'ann', task: 'it' }], script))
    expect(result.members.ann).to.have.property('status', 'stopped')
    expect(run.spent.tokens - 3 * PER_WORD).to.be.within(PER_WORD, 15)
  })
})

/** A lead with one other, who has this budget; two rounds. */
function led(budget: Budget): TeamDefinition {
  const { crew: found } = crew('hierarchical', ['boss', 'ann'], { rounds: 2 })
  return { ...found!, members: { ...found!.members, ann: { ...found!.members.ann!, budget } } }
}

/** The lead gives out the same in each round. */
const leading =
  (assignments: Json, ann: Script): Script =>
  asked => {
    if (asked.member === 'ann') return ann(asked)
    return asked.prompt.includes('The rounds are over') ? { answer: 'Enough.' } : { assignments, done: false, answer: '' }
  }

describe('the run of a team', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-team-runs-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  it('goes on in another process where it was: who answered is not asked again', async () => {
    const config = { store: { path: join(folder, 'store.db') } }
    const teams = crew('sequential', ['ann', 'bob', 'cy'])
    const quiet = {
      crew: {
        ...teams.crew!,
        members: Object.fromEntries(
          Object.entries(teams.crew!.members).map(([name, member]) => [name, { ...member, tools: [] }])
        ),
      },
    }
    const asked: string[] = []
    const hangs = Promise.withResolvers<void>()
    const first = await openTeamHost({
      store: 'store-sqlite',
      config,
      teams: quiet,
      script: entry => {
        asked.push(entry.member)
        if (entry.member !== 'bob') return `word of ${entry.member}`
        hangs.resolve()
        return sleeping(entry)
      },
    })
    const { id } = await first.service(Teams).start({ team: 'crew', task: 'Build a boat.' }, ctx)
    await hangs.promise
    await first.close({ limitMs: 0 })
    await using second = await openTeamHost({
      store: 'store-sqlite',
      config,
      teams: quiet,
      script: ({ member, prompt }) => {
        asked.push(member)
        return member === 'cy' ? prompt : `other word of ${member}`
      },
    })
    await second.service(Workflows).work(id, ctx)
    const run = await second.service(Workflows).get(id, ctx)
    expect(asked).to.deep.equal(['ann', 'bob', 'bob', 'cy'])
    expect(run).to.include({ status: 'completed' })
    expect(run.result).to.have.property('answer').that.includes('word of ann').and.includes('other word of bob')
    expect(run.result).to.have.nested.property('spent.tokens', 3 * PER_WORD)
  })

  it('ends with a cancel, which reaches the members that work', async () => {
    const working = Promise.withResolvers<void>()
    const aborted = Promise.withResolvers<void>()
    await using host = await openTeamHost({
      teams: crew('parallel', ['ann', 'bob']),
      script: ({ signal }) => {
        working.resolve()
        return new Promise((_, reject) =>
          signal.addEventListener(
            'abort',
            () => {
              aborted.resolve()
              reject(signal.reason as Error)
            },
            { once: true }
          )
        )
      },
    })
    const { id } = await host.service(Teams).start({ team: 'crew', task: 'Build a boat.' }, ctx)
    await working.promise
    expect(await host.service(Workflows).cancel(id, ctx)).to.deep.include({ status: 'failed' })
    await aborted.promise
  })

  it('is retried from the member that failed', async () => {
    let isIll = true
    const asked: string[] = []
    await using host = await openTeamHost({
      teams: crew('pipeline', ['ann', 'bob']),
      script: ({ member, prompt }) => {
        asked.push(member)
        return member === 'bob' && isIll ? new Error('bob is ill') : `${prompt}>${member}`
      },
    })
    const failed = await ran(host, 'crew', 'raw')
    expect(failed.status).to.equal('failed')
    isIll = false
    const { id } = await host.service(Workflows).retry(failed.id, {}, ctx)
    const run = await host.service(Workflows).settled(id, 15_000, ctx)
    expect(run.result).to.have.property('answer', 'raw>ann>bob')
    expect(asked).to.deep.equal(['ann', 'bob', 'bob'])
  })
})

describe('teams with the local provider', () => {
  for (const formation of ['sequential', 'parallel', 'hierarchical', 'pipeline', 'consensus', 'reflection'] as const)
    it(`work as ${formation}`, async () => {
      const host = await openTeamHost({
        teams: crew(formation, ['ann', 'bob']),
        plugins: ['provider-local'],
        config: { providers: { local: {} } },
      })
      await using _closing = host
      const run = await ran(host, 'crew', 'Which boat?')
      expect(run.error).to.equal(undefined)
      const result = run.result as { answer: string; agreed?: boolean; approved?: boolean; members: object }
      expect(result.answer).to.be.a('string').with.length.greaterThan(0)
      if (formation === 'consensus') expect(result).to.include({ agreed: true })
      if (formation === 'reflection') expect(result).to.include({ approved: true })
      expect(run.spent.tokens).to.be.greaterThan(0)
    })
})
