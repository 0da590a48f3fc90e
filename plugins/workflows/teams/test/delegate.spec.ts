import { Chat, type TeamDefinition, Teams, Workflows } from '@svc/core/contracts'
import { expect } from 'chai'
import { type HostOptions, members, openTeamHost, type Script, sleeping, ToolRequest, ctx } from './support/host.ts'

const CREW: TeamDefinition = {
  name: 'crew',
  description: 'Builds boats',
  formation: 'sequential',
  members: members('ann', 'bob'),
}
const WISH = new ToolRequest('delegate', { team: 'crew', task: 'Build a boat.' })

/** Whoever is no member delegates, and tells what came of it. */
const delegating =
  (crew: Script, wish = WISH): Script =>
  asked => {
    if (asked.member !== '') return crew(asked)
    return asked.results.length === 0 ? wish : asked.results.join('\n')
  }
const open = (script: Script, more: HostOptions = {}) => openTeamHost({ teams: { crew: CREW }, script, ...more })

describe('the tool delegate', () => {
  it('gives a task to a team, and the model what the team made of it', async () => {
    await using host = await open(delegating(({ member }) => `word of ${member}`))
    const { response, toolsUsed } = await host.service(Chat).reply({ message: 'A boat, please.', mode: 'delegate' }, ctx)
    expect(toolsUsed.map(({ tool, success }) => [tool, success])).to.deep.equal([['delegate', true]])
    expect(response).to.include('word of bob')
    const { runs } = await host.service(Workflows).runs({ limit: 10 }, ctx)
    expect(runs.map(({ workflow, status, input }) => [workflow, status, (input as { task: string }).task])).to.deep.equal([
      ['team_crew', 'completed', 'Build a boat.'],
    ])
  })

  it('is there in the mode delegate alone, and tells which teams there are', async () => {
    const seen: Record<string, readonly string[]> = {}
    await using host = await open(({ system, tools }) => {
      seen[system.includes('delegating') ? 'delegate' : 'other'] = tools
      return 'So.'
    })
    const chat = host.service(Chat)
    await chat.reply({ message: 'Hello', mode: 'delegate' }, ctx)
    await chat.reply({ message: 'Hello', mode: 'build' }, ctx)
    expect(seen.delegate).to.deep.equal(['delegate'])
    expect(seen.other).to.deep.equal([])
    const error = await chat
      .reply({ message: 'Hello', mode: 'build', tools: ['delegate'] }, ctx)
      .catch((caught: unknown) => caught)
    expect(error).to.include({ code: 'INVALID_VALUE' })
    expect(error).to.have.nested.property('details.reason', 'not allowed in mode build')
  })

  it('tells the model what the members said of a team that its budget stopped, and keeps its run', async () => {
    const crew: TeamDefinition = { ...CREW, formation: 'sequential', budget: { rounds: 1 } }
    await using host = await openTeamHost({ teams: { crew }, script: delegating(({ member }) => `word of ${member}`) })
    const { response } = await host.service(Chat).reply({ message: 'A boat, please.', mode: 'delegate' }, ctx)
    expect(response).to.include('stopped before its end (the team has no round left)').and.include('word of ann')
    const { runs } = await host.service(Teams).runs({ limit: 10 }, ctx)
    expect(runs.map(({ team, status }) => [team, status])).to.deep.equal([['crew', 'partial']])
  })

  it('tells the model of a team that failed, of one that is not there, and of members that did not agree', async () => {
    const reported = async (script: Script, formation: TeamDefinition['formation'] = 'sequential', wish = WISH) => {
      await using host = await openTeamHost({ teams: { crew: { ...CREW, formation } }, script: delegating(script, wish) })
      return (await host.service(Chat).reply({ message: 'A boat, please.', mode: 'delegate' }, ctx)).response
    }
    expect(await reported(() => new Error('all are ill')))
      .to.include('the team \\"crew\\" failed')
      .and.include('all are ill')
    expect(await reported(() => 'So.', 'sequential', new ToolRequest('delegate', { team: 'boat', task: 'Build.' }))).to.include(
      'team \\"boat\\" does not exist'
    )
    const split: Script = ({ member, isData }) => (isData ? { vote: member, reason: 'mine' } : `plan of ${member}`)
    expect(await reported(split, 'consensus'))
      .to.include('did not agree')
      .and.include('plan of ann')
      .and.include('plan of bob')
  })

  it('is refused to those whom a task was delegated to: work does not go round in circles', async () => {
    const ann = { ...CREW.members.ann!, mode: 'delegate' }
    const script: Script = ({ member, results }) => {
      if (member === 'bob') return 'Built.'
      return results.length === 0 ? WISH : results.join('\n')
    }
    const given: string[] = []
    await using host = await open(
      asked => {
        if (asked.member === 'bob') given.push(asked.prompt)
        return script(asked)
      },
      { teams: { crew: { ...CREW, members: { ...CREW.members, ann } } } }
    )
    await host.service(Chat).reply({ message: 'A boat, please.', mode: 'delegate' }, ctx)
    expect(given).to.have.length(1)
    expect(given[0]).to.include('cannot be delegated again')
    const { runs } = await host.service(Workflows).runs({ limit: 10 }, ctx)
    expect(runs).to.have.length(1)
  })

  it('lets a team go on that takes long, and tells its run', async () => {
    const last = Promise.withResolvers<string>()
    await using host = await open(
      delegating(() => last.promise),
      { config: { teams: { delegate_wait: '20ms' } } }
    )
    const { response } = await host.service(Chat).reply({ message: 'A boat, please.', mode: 'delegate' }, ctx)
    const { runs } = await host.service(Workflows).runs({ limit: 10 }, ctx)
    expect(response).to.include('still working').and.include(runs[0]!.id)
    last.resolve('Built.')
    expect((await host.service(Workflows).settled(runs[0]!.id, 15_000, ctx)).status).to.equal('completed')
  })

  it('cancels the team when its caller waits no longer', async () => {
    const working = Promise.withResolvers<void>()
    const leaving = new AbortController()
    await using host = await open(
      delegating(asked => {
        working.resolve()
        return sleeping(asked)
      })
    )
    const reply = host.service(Chat).reply({ message: 'A boat, please.', mode: 'delegate' }, { ...ctx, signal: leaving.signal })
    await working.promise
    leaving.abort()
    await reply.catch(() => {})
    const { runs } = await host.service(Workflows).runs({ limit: 10 }, ctx)
    const run = await host.service(Workflows).settled(runs[0]!.id, 15_000, ctx)
    expect(run).to.include({ status: 'failed' })
    expect(run.error!.code).to.equal('CANCELLED')
  })

  it('may be used once by members of a team that a person runs', async () => {
    const ann = { ...CREW.members.ann!, mode: 'delegate' }
    await using host = await open(
      ({ member, results }) => (member === 'ann' && results.length === 0 ? WISH : `word of ${member}`),
      {
        teams: { crew: CREW, heads: { ...CREW, name: 'heads', members: { ...CREW.members, ann } } },
      }
    )
    const { id } = await host.service(Teams).start({ team: 'heads', task: 'Build a boat.' }, ctx)
    const run = await host.service(Workflows).settled(id, 15_000, ctx)
    expect(run).to.include({ status: 'completed' })
    const { runs } = await host.service(Workflows).runs({ limit: 10 }, ctx)
    expect(runs.map(({ workflow }) => workflow).toSorted()).to.deep.equal(['team_crew', 'team_heads'])
  })
})
