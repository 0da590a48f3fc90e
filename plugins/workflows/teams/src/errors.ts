import { svcError } from '@svc/core'
import type { PublicError, Run, WorkflowProblem } from '@svc/core/contracts'
import type { Said, Team } from './team.ts'

export const teamUnknown = (name: string, known: readonly string[]) =>
  svcError('TEAM_UNKNOWN', `there is no team "${name.slice(0, 100)}"`, {
    details: { field: 'team', value: name.slice(0, 100), allowed: known.slice(0, 50), reason: 'not found' },
    hint: known.length > 0 ? `one of: ${known.slice(0, 30).join(', ')}` : 'write one into a folder of teams.roots',
  })

export const teamInvalid = (name: string, problems: readonly WorkflowProblem[]) =>
  svcError('TEAM_INVALID', `the team "${name.slice(0, 100)}" cannot work: ${problems.slice(0, 3).map(lineOf).join('; ')}`, {
    details: { field: 'team', value: name.slice(0, 100), reason: 'invalid', problems },
    hint: problems.find(({ hint }) => hint)?.hint ?? `svc teams show ${name.slice(0, 100)} tells all of it`,
  })

/** A problem in one line. */
export const lineOf = ({ path, message, line }: WorkflowProblem): string =>
  `${path}${path ? ' ' : ''}${message}${line === undefined ? '' : ` (line ${line})`}`

/** A member has failed that the formation cannot do without. */
export const memberFailed = ({ name, formation }: Team, member: string, error: PublicError) =>
  svcError(
    'TEAM_MEMBER_FAILED',
    `"${member}" of the team "${name}" has failed, and a ${formation} team needs it: ${error.message}`,
    {
      details: { team: name, member, error },
      hint: 'fix what failed, and retry the run: what the others have done is kept',
    }
  )

export const allFailed = ({ name }: Team, said: readonly Said[]) =>
  svcError(
    'TEAM_MEMBER_FAILED',
    `all members of the team "${name}" have failed: ${said[0]?.error?.message ?? 'nobody said anything'}`,
    {
      details: { team: name, members: Object.fromEntries(said.map(({ member, error }) => [member, error])) },
      hint: 'fix what failed, and retry the run',
    }
  )

export const taskInvalid = () =>
  svcError('INVALID_VALUE', 'the task must say something', { details: { field: 'task', reason: 'must not be blank' } })

export const delegatedAlready = () =>
  svcError('DELEGATED_ALREADY', 'this work was delegated to you: it is not delegated again', {
    hint: 'do it yourself, and answer',
  })

/** What became of work that was delegated, for the model that did. */
export const runFailed = (team: string, { id, error }: Run) =>
  svcError('TEAM_FAILED', `the team "${team}" has failed: ${error?.message ?? 'nobody knows why'}`, {
    details: { team, run: id, code: error?.code ?? null },
    hint: 'do it yourself, or give the task to another team',
  })
