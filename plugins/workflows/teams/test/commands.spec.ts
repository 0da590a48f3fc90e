import type { RunningHost } from '@svc/core'
import { codeOf } from '@svc/core'
import { runCommand } from '@svc/cli/command'
import type { TeamDefinition } from '@svc/core/contracts'
import { Workflows } from '@svc/core/contracts'
import { expect } from 'chai'
import { COMMANDS } from '../src/commands.ts'
import { members, openTeamHost, type Script, sleeping, ctx } from './support/host.ts'

const { 'teams:list': list, 'teams:show': show, 'teams:run': run, 'teams:runs': runsList } = COMMANDS
type Command = (typeof COMMANDS)[keyof typeof COMMANDS]

const CREW: TeamDefinition = {
  name: 'crew',
  description: 'Builds boats',
  formation: 'parallel',
  members: members('ann', 'bob'),
  budget: { tokens: 90 },
}
const open = (script: Script = ({ member }) => `word of ${member}`, crew: Partial<TeamDefinition> = {}) =>
  openTeamHost({ teams: { crew: { ...CREW, ...crew } }, script })

async function called(host: RunningHost, command: Command, args: readonly string[], signal: AbortSignal = ctx.signal) {
  const { code, out, err } = await runCommand(command, args, { signal, host: async () => host })
  return { code, printed: out, noted: err }
}

describe('svc teams', () => {
  it('lists the teams', async () => {
    await using host = await open()
    const { printed } = await called(host, list, [])
    expect(printed[1]).to.match(/^crew {2}parallel {3}ann bob {2}test:teams\/crew {2}Builds boats$/)
    const { teams } = JSON.parse((await called(host, list, ['--json'])).printed[0]!) as { teams: unknown[] }
    expect(teams).to.have.length(1)
  })

  it('lists a team that cannot work with what is wrong', async () => {
    await using host = await open(undefined, { rounds: 3 })
    const { printed, noted } = await called(host, list, [])
    expect(printed[1]).to.include('invalid, see below')
    expect(noted).to.deep.equal(['test:teams/crew: rounds has no effect in the formation parallel'])
  })

  it('shows a team with its members', async () => {
    await using host = await open()
    const { printed } = await called(host, show, ['crew'])
    expect(printed).to.include.members([
      'crew: parallel (test:teams/crew)',
      'Builds boats',
      'budget: {"tokens":90}',
      'ann: the ann',
      '  do what a ann does',
    ])
  })

  it('runs a team: the answer on the standard output, who works on the other', async () => {
    await using host = await open()
    const { code, printed, noted } = await called(host, run, ['crew', 'Build', 'a boat.'])
    expect(code).to.equal(0)
    expect(printed).to.deep.equal(['## ann (the ann)\n\nword of ann\n\n## bob (the bob)\n\nword of bob'])
    expect(noted).to.include.members([
      'round 1: ann started',
      'round 1: bob answered (tokens: 10, tool calls: 0)',
      'ann: completed',
      'tokens: 20, tool calls: 0',
    ])
    const { runs } = await host.service(Workflows).runs({ limit: 1 }, ctx)
    expect(runs[0]!.input).to.deep.equal({ task: 'Build a boat.' })
  })

  it('says what failed and how it ended, with exit code 1 where the team failed', async () => {
    await using host = await open(() => new Error('all are\nill'))
    const { code, printed, noted } = await called(host, run, ['crew', 'Build.'])
    expect([code, printed]).to.deep.equal([1, []])
    expect(noted.at(-1)).to.include('failed: TEAM_MEMBER_FAILED').and.include('all are ill')
  })

  it('stops a team at the budget of the flags: what its members said, with exit code 1', async () => {
    const crew = { formation: 'sequential', budget: { tokens: 1_000 } } as const
    await using host = await open(undefined, crew)
    const { code, printed, noted } = await called(host, run, ['crew', 'Build.', '--tokens', '13', '--time', '5m'])
    expect(code).to.equal(1)
    expect(printed).to.deep.equal(['## ann\nword of ann\n'])
    expect(noted.find(line => line.startsWith('partial: '))).to.include('bob: the turn has a budget of 3 tokens')
    expect(noted).to.include.members(['ann: completed', 'tokens: 10, tool calls: 0'])
    expect(noted.find(line => line.startsWith('bob: '))).to.match(/^bob: stopped \(budget: tokens\)/)
    const whole = await called(host, run, ['crew', 'Build.', '--rounds', '1', '--json'])
    expect(whole.code).to.equal(1)
    expect(JSON.parse(whole.printed[0]!)).to.have.nested.property('result.partial.budget', 'rounds')
    const parallel = await open(({ member }) => `word of ${member}`)
    await using other = parallel
    expect((await called(other, run, ['crew', 'Build.', '--rounds', '1'])).code).to.equal(0)
    expect((await called(other, run, ['crew', 'Build.', '--cost', '1'])).noted.at(-1)).to.include('has no price')
    for (const args of [
      ['--cost', 'much'],
      ['--time', 'soon'],
      ['--cost', '-1'],
    ]) {
      const refused = await called(other, run, ['crew', 'Build.', ...args]).catch(codeOf)
      expect(refused, args.join(' ')).to.equal('INVALID_VALUE')
    }
  })

  it('lists runs, and shows one as a tree', async () => {
    await using host = await open(undefined, { formation: 'sequential', budget: { tokens: 13 } })
    expect((await called(host, runsList, [])).noted).to.deep.equal(['no runs found'])
    await called(host, run, ['crew', 'Build', 'a boat.'])
    const { printed } = await called(host, runsList, ['--team', 'crew', '--status', 'partial'])
    expect(printed[0]).to.match(/^RUN +TEAM +STATUS +STARTED +ROUNDS +TOKENS +COST +TASK/)
    expect(printed[1]).to.match(/ crew +partial +\S+ +2 +10 +- +Build a boat\./)
    const { runs } = JSON.parse((await called(host, runsList, ['--json'])).printed[0]!) as { runs: { id: string }[] }
    expect(runs).to.have.length(1)
    const { id } = runs[0]!
    const lines = (await called(host, show, [id])).printed
    expect(lines).to.include.members([
      `${id}: crew (sequential), partial`,
      'task: Build a boat.',
      'budget: {"tokens":13}',
      'ann: completed, tokens: 10, tool calls: 0',
      'bob: stopped (budget: tokens), tokens: 0, tool calls: 0',
      'round 1',
      '  ann: completed, stage/actor, tokens: 10, tool calls: 0',
      '    said: word of ann',
      'round 2',
    ])
    expect(lines.find(line => line.startsWith('    error: '))).to.include('BUDGET_EXHAUSTED')
    const shown = JSON.parse((await called(host, show, [id, '--json'])).printed[0]!) as object
    expect(shown).to.deep.include({ id, status: 'partial' }).and.have.property('tree')
    expect(await called(host, show, ['none']).catch(codeOf)).to.equal('TEAM_UNKNOWN')
  })

  it('takes out of an answer what would steer a terminal', async () => {
    await using host = await open(() => 'a\u001b[2Jb')
    expect((await called(host, run, ['crew', 'Build.'])).printed[0])
      .to.include('a[2Jb')
      .and.not.include('\u001b')
  })

  it('cancels the run at Ctrl-C', async () => {
    const working = Promise.withResolvers<void>()
    const leaving = new AbortController()
    await using host = await open(asked => {
      working.resolve()
      return sleeping(asked)
    })
    const ended = called(host, run, ['crew', 'Build.'], leaving.signal).catch(() => undefined)
    await working.promise
    leaving.abort()
    await ended
    const { runs } = await host.service(Workflows).runs({ limit: 1 }, ctx)
    expect(runs[0]).to.include({ status: 'failed' })
  })

  it('says what is wrong with a command line', async () => {
    await using host = await open()
    for (const [command, args] of [
      [run, ['crew']],
      [show, []],
      [list, ['crew']],
      [run, ['crew', 'Build.', '--fast']],
      [run, ['crew', 'Build.', '--tokens', '-1']],
      [run, ['crew', 'Build.', '--rounds', '0']],
      [runsList, ['--status', 'lost']],
      [runsList, ['--limit', '0']],
    ] as const) {
      const error = await called(host, command, args).catch((caught: unknown) => caught)
      expect(codeOf(error)).to.equal('COMMAND_LINE_INVALID')
    }
  })
})
