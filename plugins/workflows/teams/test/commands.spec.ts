import type { RunningHost } from '@svc/core'
import { codeOf } from '@svc/core'
import { runCommand } from '@svc/cli/command'
import type { TeamDefinition } from '@svc/core/contracts'
import { Workflows } from '@svc/core/contracts'
import { expect } from 'chai'
import { COMMANDS } from '../src/commands.ts'
import { members, openTeamHost, type Script, sleeping, ctx } from './support/host.ts'

const { 'teams:list': list, 'teams:show': show, 'teams:run': run } = COMMANDS
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
    ] as const) {
      const error = await called(host, command, args).catch((caught: unknown) => caught)
      expect(codeOf(error)).to.equal('COMMAND_LINE_INVALID')
    }
  })
})
