import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CallContext, codeOf, type RunningHost } from '@svc/core'
import { Teams, Tools, Workflows } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { ctx, openTeamHost, ran, type Script, sleeping, ToolRequest } from './support/host.ts'
import { ECHO, team } from './support/team.ts'

const CREW = team('sequential', ['ann', 'bob', 'cy'])
const PRICED = { models: { prices: { 'stage/actor': { input: 1_000_000, output: 1_000_000 } } } }
const as = (id: string, ...scopes: readonly string[]): CallContext => ({ ...ctx, principal: { id, scopes } })
const LOOK = item(Tools, 'look', {
  description: 'Looks at the boat',
  category: 'test',
  effects: ['read'],
  parameters: { type: 'object', properties: {} },
  call: async () => ({ content: [{ type: 'text', text: 'a boat' }] }),
})

const treeOf = (host: RunningHost, id: string, by = ctx) => host.service(Teams).run(id, by)
const idsOf = async (host: RunningHost, by = ctx) => (await host.service(Teams).runs({ limit: 100 }, by)).runs.map(({ id }) => id)
const begun = async (host: RunningHost, by: CallContext) => {
  const { id } = await host.service(Teams).start({ team: 'crew', task: 'Build.' }, by)
  await host.service(Workflows).settled(id, 15_000, by)
  return id
}

describe('runs of teams', () => {
  it('are a tree of rounds and messages, with members, tools and costs', async () => {
    const script: Script = ({ member, results }) =>
      member === 'bob' && results.length === 0 ? new ToolRequest('look') : `word of ${member}`
    await using host = await openTeamHost({
      teams: { crew: CREW },
      script,
      give: [LOOK],
      plugins: ['models'],
      config: PRICED,
    })
    const run = await ran(host, 'crew', 'Build a boat.')
    const found = await treeOf(host, run.id)
    expect(found).to.deep.include({
      id: run.id,
      run: run.id,
      team: 'crew',
      formation: 'sequential',
      owner: ctx.principal.id,
      status: 'completed',
      task: 'Build a boat.',
      rounds: 3,
      spent: { tokens: 40, toolCalls: 1, cost: 40 },
    })
    expect(found.tree!.map(({ round, messages }) => [round, ...messages.map(({ member }) => member)])).to.deep.equal([
      [1, 'ann'],
      [2, 'bob'],
      [3, 'cy'],
    ])
    const [message] = found.tree![1]!.messages
    expect(message).to.deep.include({
      status: 'completed',
      reply: 'word of bob',
      model: 'stage/actor',
      tools: [{ tool: 'look', success: true }],
      spent: { tokens: 20, toolCalls: 1, cost: 20 },
      attempts: 1,
    })
    expect(message!.prompt).to.include('Build a boat.').and.include('word of ann')
    expect(found.members.map(({ name, status, spent }) => [name, status, spent.cost])).to.deep.equal([
      ['ann', 'completed', 10],
      ['bob', 'completed', 20],
      ['cy', 'completed', 10],
    ])
    const { runs } = await host.service(Teams).runs({ limit: 10 }, ctx)
    expect(runs).to.have.length(1)
    const { members: _members, tree: _tree, ...info } = found
    expect(runs[0]).to.deep.equal(info)
  })

  it('show a member that failed, and those that were not asked', async () => {
    await using host = await openTeamHost({
      teams: { crew: CREW },
      script: ({ member }) => (member === 'bob' ? new Error('bob is ill') : 'Done.'),
    })
    const run = await ran(host, 'crew')
    const found = await treeOf(host, run.id)
    expect(found).to.include({ status: 'failed' })
    expect(found.error).to.include({ code: 'TEAM_MEMBER_FAILED' })
    expect(found.members.map(({ status }) => status)).to.deep.equal(['completed', 'failed', 'idle'])
    expect(found.members[1]!.error!.message).to.include('bob is ill')
    expect(found.members[2]).to.not.have.property('stoppedBy')
  })

  it('are shown while they run, and when they are cancelled', async () => {
    const asked = Promise.withResolvers<void>()
    await using host = await openTeamHost({
      teams: { crew: CREW },
      script: entry => {
        if (entry.member === 'ann') return 'Done.'
        asked.resolve()
        return sleeping(entry)
      },
    })
    const { id } = await host.service(Teams).start({ team: 'crew', task: 'Build.' }, ctx)
    await asked.promise
    const live = await treeOf(host, id)
    expect(live).to.include({ status: 'running', rounds: 2 })
    expect(live.members.map(({ status }) => status)).to.deep.equal(['completed', 'running', 'idle'])
    expect(live.spent.tokens).to.equal(10)
    await host.service(Workflows).cancel(id, ctx)
    const over = await treeOf(host, id)
    expect(over).to.include({ status: 'cancelled' }).and.have.property('finishedAt')
    expect(over.members.map(({ status }) => status)).to.deep.equal(['completed', 'cancelled', 'idle'])
    const { runs } = await host.service(Teams).runs({ limit: 10, status: 'cancelled' }, ctx)
    expect(runs.map(item => item.id)).to.deep.equal([id])
    expect((await host.service(Teams).runs({ limit: 10, status: 'running' }, ctx)).runs).to.deep.equal([])
  })

  it('are kept for steps of workflows too, each with an id of its own', async () => {
    await using host = await openTeamHost({ teams: { crew: CREW }, script: ECHO })
    const ask = { type: 'team', team: 'crew', task: 'Build.' }
    const nodes = { one: { ...ask, next: 'two' }, two: ask }
    const { id } = await host.service(Workflows).start({ workflow: { name: 'boats', nodes } }, ctx)
    await host.service(Workflows).settled(id, 15_000, ctx)
    const { runs } = await host.service(Teams).runs({ limit: 10 }, ctx)
    expect(runs.map(({ run, workflow, step }) => [run, workflow, step])).to.deep.equal([
      [id, 'boats', 'two/team/team'],
      [id, 'boats', 'one/team/team'],
    ])
    expect(new Set(runs.map(item => item.id)).size).to.equal(2)
    for (const item of runs) {
      const found = await treeOf(host, item.id)
      expect(found.tree).to.have.length(3)
      expect(found.spent.tokens).to.equal(30)
    }
  })

  it('are seen by their owner and by the scope admin only', async () => {
    await using host = await openTeamHost({ teams: { crew: CREW }, script: ECHO })
    const [ann, bob, boss] = [as('ann', 'workflows'), as('bob', 'workflows', 'read'), as('boss', 'admin')]
    const id = await begun(host, ann)
    expect(await idsOf(host, ann)).to.deep.equal([id])
    expect(await idsOf(host, bob)).to.deep.equal([])
    expect(await idsOf(host, boss)).to.deep.equal([id])
    expect(await treeOf(host, id, boss)).to.include({ owner: 'ann' })
    for (const strange of [id, `${id}.x`, '', '../x', '__proto__', 'x'.repeat(5_000)]) {
      const thrown = await treeOf(host, strange, bob).then(() => undefined, codeOf)
      expect(thrown, strange).to.equal('TEAM_RUN_UNKNOWN')
    }
    const refused = await host
      .service(Teams)
      .runs({ limit: 10, cursor: 'none' }, ann)
      .then(() => undefined, codeOf)
    expect(refused).to.equal('INVALID_VALUE')
  })

  it('are kept up to the number for each principal', async () => {
    const config = { teams: { runs: { keep: 2 } } }
    await using host = await openTeamHost({ teams: { crew: CREW }, script: ECHO, config })
    const [ann, bob] = [as('ann', 'workflows'), as('bob', 'workflows')]
    const other = await begun(host, bob)
    const ids = []
    for (let at = 0; at < 4; at++) ids.push(await begun(host, ann))
    expect(await idsOf(host, ann)).to.deep.equal([ids[3], ids[2]])
    expect(await idsOf(host, bob)).to.deep.equal([other])
    expect(await treeOf(host, ids[0]!, ann).then(() => undefined, codeOf)).to.equal('TEAM_RUN_UNKNOWN')
    expect(await host.service(Workflows).get(ids[0]!, ann)).to.include({ status: 'completed' })
  })

  it('are kept up to their age', async () => {
    const config = { teams: { runs: { keep_for: '1s' } } }
    await using host = await openTeamHost({ teams: { crew: CREW }, script: ECHO, config })
    const id = await begun(host, ctx)
    for (const until = Date.now() + 10_000; Date.now() < until && (await idsOf(host)).length > 0; )
      await new Promise(resolve => setTimeout(resolve, 50))
    expect(await idsOf(host)).to.deep.equal([])
    expect(await treeOf(host, id).then(() => undefined, codeOf)).to.equal('TEAM_RUN_UNKNOWN')
  })

  it('are not kept with a number of 0, and the team works', async () => {
    const config = { teams: { runs: { keep: 0 } } }
    await using host = await openTeamHost({ teams: { crew: CREW }, script: ECHO, config })
    const run = await ran(host, 'crew')
    expect(run).to.include({ status: 'completed' })
    expect(await idsOf(host)).to.deep.equal([])
  })

  it('are listed in pages, by team and status', async () => {
    const other = { ...CREW, name: 'other' }
    await using host = await openTeamHost({ teams: { crew: CREW, other }, script: ECHO })
    const ids: string[] = []
    for (const name of ['crew', 'other', 'crew', 'other', 'crew']) ids.unshift((await ran(host, name)).id)
    const seen: string[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await host.service(Teams).runs({ limit: 2, ...(cursor === undefined ? {} : { cursor }) }, ctx)
      seen.push(...page.runs.map(({ id }) => id))
      cursor = page.next
      if (cursor === undefined) break
    }
    expect(seen).to.deep.equal(ids)
    const { runs } = await host.service(Teams).runs({ limit: 10, team: 'other', status: 'completed' }, ctx)
    expect(runs.map(({ id }) => id)).to.deep.equal([ids[1], ids[3]])
  })

  it('cut long texts, and say so', async () => {
    const long = 'x'.repeat(100_000)
    await using host = await openTeamHost({ teams: { crew: CREW }, script: ({ member }) => (member === 'bob' ? long : 'Done.') })
    const { id } = await ran(host, 'crew')
    const messages = (await treeOf(host, id)).tree!.flatMap(round => round.messages)
    expect(messages.map(({ reply, shortened = false }) => [reply!.length, shortened])).to.deep.equal([
      [5, false],
      [65_536, true],
      [5, true],
    ])
  })
})

describe('a run of a team whose process ends', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-team-runs-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  it('is shown as running until another process continues it, then whole', async () => {
    const config = { store: { path: join(folder, 'store.db') } }
    const quiet = {
      ...CREW,
      members: Object.fromEntries(Object.entries(CREW.members).map(([name, one]) => [name, { ...one, tools: [] }])),
    }
    const hangs = Promise.withResolvers<void>()
    const options = { store: 'store-sqlite', config, teams: { crew: quiet } }
    const first = await openTeamHost({
      ...options,
      script: entry => {
        if (entry.member !== 'bob') return `word of ${entry.member}`
        hangs.resolve()
        return sleeping(entry)
      },
    })
    const { id } = await first.service(Teams).start({ team: 'crew', task: 'Build.' }, ctx)
    await hangs.promise
    await first.close({ limitMs: 0 })
    await using second = await openTeamHost({ ...options, script: ECHO })
    const broken = await treeOf(second, id)
    expect(broken).to.include({ status: 'running', rounds: 2 })
    expect(broken.members.map(({ status }) => status)).to.deep.equal(['completed', 'running', 'idle'])
    expect(broken.tree![0]!.messages[0]).to.include({ reply: 'word of ann' })
    expect(await idsOf(second)).to.deep.equal([id])
    await second.service(Workflows).work(id, ctx)
    const whole = await treeOf(second, id)
    expect(whole).to.include({ status: 'completed', startedAt: broken.startedAt })
    expect(whole.tree!.map(({ messages }) => messages[0]!.attempts)).to.deep.equal([1, 2, 1])
    expect(await idsOf(second)).to.deep.equal([id])
  })
})
