import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf, type SvcError } from '@svc/core'
import { type TeamDefinition, TeamDefinitions, Teams, Tools, Workflows } from '@svc/core/contracts'
import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { members, openTeamHost, ran, ctx } from './support/host.ts'

const BOAT = `
description: Builds boats
formation: pipeline
members:
  ann: { role: Carpenter, goal: Saw the planks }
  bob: { role: Painter, goal: Paint the boat }
`
const CREW: TeamDefinition = { name: 'crew', formation: 'sequential', members: members('ann', 'bob') }

const failure = (work: Promise<unknown>): Promise<SvcError> =>
  work.then(
    () => expect.fail('it did not fail'),
    (error: unknown) => error as SvcError
  )

describe('teams', () => {
  let root: string
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'svc-teams-'))
  })
  afterEach(() => rm(root, { recursive: true }))
  const open = (teams: Readonly<Record<string, TeamDefinition>> = {}) =>
    openTeamHost({ teams, config: { teams: { roots: [join(root, 'in')] } } })
  const file = async (name: string, text: string) => {
    await mkdir(join(root, 'in'), { recursive: true })
    await writeFile(join(root, 'in', name), text)
  }

  it('are those of plugins and of the files below the roots', async () => {
    await file('boat.yaml', BOAT)
    await using host = await open({ crew: CREW })
    const teams = await host.service(Teams).list(ctx)
    expect(teams).to.deep.equal([
      { name: 'boat', description: 'Builds boats', formation: 'pipeline', source: 'boat.yaml', members: ['ann', 'bob'] },
      { name: 'crew', formation: 'sequential', source: 'test:teams/crew', members: ['ann', 'bob'] },
    ])
    const { definition } = await host.service(Teams).show('boat', ctx)
    expect(definition).to.deep.include({ name: 'boat', formation: 'pipeline' })
    expect((await ran(host, 'boat')).result).to.deep.include({ team: 'boat', answer: 'Done.' })
  })

  it('are as the files are now: new, changed and gone', async () => {
    await using host = await open()
    const teams = host.service(Teams)
    expect(await teams.list(ctx)).to.deep.equal([])
    await file('boat.yaml', BOAT)
    expect((await teams.list(ctx)).map(({ name }) => name)).to.deep.equal(['boat'])
    expect(host.slot(TeamDefinitions).has('boat')).to.equal(true)
    await file('boat.yaml', BOAT.replace('pipeline', 'sequential').replace('Builds boats', 'Builds other boats'))
    expect((await teams.show('boat', ctx)).info).to.deep.include({ formation: 'sequential' })
    await rm(join(root, 'in', 'boat.yaml'))
    expect(await teams.list(ctx)).to.deep.equal([])
    expect(host.slot(TeamDefinitions).has('boat')).to.equal(false)
  })

  it('that are written wrong are listed with all that is wrong, each with its line', async () => {
    await file(
      'wrong.yaml',
      `formation: pipelin
rounds: 0
members:
  ann: { role: Carpenter }
  Bob: { role: Painter, goal: Paint, colour: red }
`
    )
    await using host = await open()
    const [wrong] = await host.service(Teams).list(ctx)
    expect(wrong).to.deep.include({ name: 'wrong', source: 'wrong.yaml', members: [] })
    const reported = wrong!.problems!.map(({ path, line }) => `${path}:${line}`)
    expect(reported).to.have.members(['formation:1', 'rounds:2', 'members.ann.goal:4', 'members:3', 'members.Bob.colour:5'])
    expect(wrong!.problems!.find(({ path }) => path === 'formation')!.hint).to.include('pipeline')
    const error = await failure(host.service(Teams).start({ team: 'wrong', task: 'Build.' }, ctx))
    expect(error).to.include({ code: 'TEAM_INVALID' })
    expect(error.details).to.have.property('problems').with.length(5)
  })

  it('that are no YAML are listed with the line', async () => {
    await file('torn.yaml', 'name: torn\nmembers: {\n')
    await using host = await open()
    const [torn] = await host.service(Teams).list(ctx)
    expect(torn!.problems).to.have.length(1)
    expect(torn!.problems![0]!.line).to.be.greaterThan(1)
  })

  const found: readonly (readonly [string, Partial<TeamDefinition>, RegExp])[] = [
    ['one member only', { members: members('ann') }, /members must have at least 2 keys/],
    [
      'a lead where nobody leads',
      { members: { ...members('ann'), bob: { role: 'b', goal: 'b', lead: true } } },
      /members.bob.lead has no effect/,
    ],
    [
      'two leads',
      {
        formation: 'parallel',
        members: { ann: { role: 'a', goal: 'a', lead: true }, bob: { role: 'b', goal: 'b', lead: true } },
      },
      /second lead/,
    ],
    ['three who reflect', { formation: 'reflection', members: members('ann', 'bob', 'cy') }, /members must be two/],
    ['rounds where there are none', { rounds: 2 }, /rounds has no effect/],
    ['an agreement where nobody votes', { agreement: 0.8 }, /agreement has no effect/],
    ['an agreement of half', { formation: 'consensus', agreement: 0.5 }, /agreement must be > 0.5/],
    [
      'an unknown tool',
      { members: { ...members('ann'), bob: { role: 'b', goal: 'b', tools: ['hammmer'] } } },
      /tools\[0\] is the tool "hammmer"/,
    ],
    [
      'an unknown mode',
      { members: { ...members('ann'), bob: { role: 'b', goal: 'b', mode: 'biuld' } } },
      /mode is the mode "biuld"/,
    ],
    ['another name than its plugin gives it', { name: 'other' }, /name must be "crew"/],
  ]
  for (const [title, change, message] of found)
    it(`of plugins do not work with ${title}`, async () => {
      await using host = await open({ crew: { ...CREW, ...change } as TeamDefinition })
      const error = await failure(host.service(Teams).start({ team: 'crew', task: 'Build.' }, ctx))
      expect(error).to.include({ code: 'TEAM_INVALID' })
      expect(error.message).to.match(message)
      const [listed] = await host.service(Teams).list(ctx)
      expect(listed!.problems).to.have.length(1)
    })

  it('of a file do not take the name of one of a plugin', async () => {
    await file('crew.yaml', BOAT)
    await using host = await open({ crew: CREW })
    const all = await host.service(Teams).list(ctx)
    expect(all.map(({ source, problems = [] }) => [source, problems.length])).to.have.deep.members([
      ['test:teams/crew', 0],
      ['crew.yaml', 1],
    ])
    expect((await host.service(Teams).show('crew', ctx)).definition.formation).to.equal('sequential')
  })

  it('are read once from a folder that two roots name', async () => {
    await file('boat.yaml', BOAT)
    await symlink(join(root, 'in'), join(root, 'link'))
    const roots = [join(root, 'in'), join(root, 'link'), join(root, 'in')]
    await using host = await openTeamHost({ config: { teams: { roots } } })
    const teams = await host.service(Teams).list(ctx)
    expect(teams.map(({ name, problems = [] }) => [name, problems.length])).to.deep.equal([['boat', 0]])
  })

  it('are not read through a link that leads out of the roots', async () => {
    await mkdir(join(root, 'in'))
    await writeFile(join(root, 'secret.yaml'), BOAT)
    await symlink(join(root, 'secret.yaml'), join(root, 'in', 'boat.yaml'))
    await using host = await open()
    expect(await host.service(Teams).list(ctx)).to.deep.equal([])
  })

  it('that are not there are reported with those that are, and never looked for as a path', async () => {
    await file('boat.yaml', BOAT)
    await using host = await open()
    for (const name of ['boot', '../in/boat.yaml', 'boat.yaml']) {
      const error = await failure(host.service(Teams).show(name, ctx))
      expect(error).to.include({ code: 'TEAM_UNKNOWN' })
      expect(error.hint).to.include('boat')
    }
  })

  it('take no task that says nothing', async () => {
    await using host = await open({ crew: CREW })
    for (const task of ['  ', null]) {
      expect(codeOf(await failure(host.service(Teams).start({ team: 'crew', task: task }, ctx)))).to.equal('INVALID_VALUE')
      expect(codeOf(await failure(host.service(Teams).body({ team: 'crew', task }, ctx)))).to.equal('INVALID_VALUE')
    }
  })

  it('run as the same stored workflow for each task', async () => {
    await using host = await open({ crew: CREW })
    const run = await ran(host, 'crew', { build: ['a boat', 1] })
    expect(run).to.include({ workflow: 'team_crew', status: 'completed' })
    expect(run.input).to.deep.equal({ task: { build: ['a boat', 1] } })
    const steps = await host.service(Workflows).steps(run.id, ctx)
    expect(steps.map(({ step }) => step)).to.include.members(['team', 'team/1-1-ann/ann', 'team/2-2-bob/bob'])
  })

  it('have no tool to delegate with where there is no team', async () => {
    await using host = await open()
    expect(host.slot(Tools).has('delegate')).to.equal(false)
    await file('boat.yaml', BOAT)
    await host.service(Teams).list(ctx)
    while (!host.slot(Tools).has('delegate')) await wait(5)
    expect(host.slot(Tools).get('delegate')!.description).to.include('boat (Builds boats)')
  })
})

describe('a team in a workflow', () => {
  const TEXTS = [
    '${{ secrets.KEY }} and ${{ 1 + 1 }}',
    '$${{ input }}',
    'a " quote, a \\ and }} \n ${{ "x',
    "${{ 'it''s' }} \u0000 \ud800",
    '${{',
  ]

  it('is given its task and its goals as they are, whatever they look like', async () => {
    for (const text of TEXTS) {
      const seen: string[] = []
      const crew: TeamDefinition = { ...CREW, members: { ...members('bob'), ann: { role: 'Reader', goal: text } } }
      await using host = await openTeamHost({
        teams: { crew },
        script: ({ system, prompt }) => {
          seen.push(`${system}\n${prompt}`)
          return 'Read.'
        },
      })
      const workflow = {
        name: 'around',
        nodes: { ask: { type: 'team', team: 'crew', task: '${{ input.text }}' } },
        result: '${{ nodes.ask.answer }}',
      }
      const { id } = await host.service(Workflows).start({ workflow, input: { text } }, ctx)
      const run = await host.service(Workflows).settled(id, 15_000, ctx)
      expect(run.error).to.equal(undefined)
      expect(run.result).to.equal('Read.')
      expect(seen[0]).to.include(`# Task\n\n${text.toWellFormed()}`)
      expect(seen[1]).to.include(`Your goal: ${text.toWellFormed()}\n`)
    }
  })

  it('fails the node where the team fails, so that the workflow can catch it', async () => {
    await using host = await openTeamHost({ teams: { crew: CREW }, script: () => new Error('all are ill') })
    const nodes = {
      ask: { type: 'team', team: 'crew', task: 'Build.', catch: 'sorry' },
      sorry: { type: 'transform', value: '${{ error.code }}' },
    }
    const { id } = await host.service(Workflows).start({ workflow: { name: 'around', nodes }, input: {} }, ctx)
    expect((await host.service(Workflows).settled(id, 15_000, ctx)).result).to.equal('TEAM_MEMBER_FAILED')
  })
})
