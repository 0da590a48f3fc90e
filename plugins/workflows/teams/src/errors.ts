import { svcError } from '@svc/core'
import type { PublicError, Run, WorkflowProblem } from '@svc/core/contracts'
import type { Said, Team } from './team.ts'

export const teamUnknown = (name: string, known: readonly string[]) =>
  svcError('TEAM_UNKNOWN', `team "${name.slice(0, 100)}" does not exist`, {
    details: { field: 'team', value: name.slice(0, 100), allowed: known.slice(0, 50), reason: 'not found' },
    hint: known.length > 0 ? `Use one of: ${known.slice(0, 30).join(', ')}` : 'Add a team file to a folder of teams.roots',
  })

export const teamInvalid = (name: string, problems: readonly WorkflowProblem[]) =>
  svcError('TEAM_INVALID', `team "${name.slice(0, 100)}" is invalid: ${problems.slice(0, 3).map(lineOf).join('; ')}`, {
    details: { field: 'team', value: name.slice(0, 100), reason: 'invalid', problems },
    hint: problems.find(({ hint }) => hint)?.hint ?? `Run \`svc teams show ${name.slice(0, 100)}\` to see all problems`,
  })

/** A problem in one line. */
export const lineOf = ({ path, message, line }: WorkflowProblem): string =>
  `${path}${path ? ' ' : ''}${message}${line === undefined ? '' : ` (line ${line})`}`

/** A member failed that the formation needs. */
export const memberFailed = ({ name, formation }: Team, member: string, error: PublicError) =>
  svcError('TEAM_MEMBER_FAILED', `the ${formation} team "${name}" needs the member "${member}", which failed: ${error.message}`, {
    details: { team: name, member, error },
    hint: 'Fix the cause and retry the run; the work of the other members is kept',
  })

export const allFailed = ({ name }: Team, said: readonly Said[]) =>
  svcError(
    'TEAM_MEMBER_FAILED',
    `all members of the team "${name}" failed: ${said[0]?.error?.message ?? 'no member gave an answer'}`,
    {
      details: { team: name, members: Object.fromEntries(said.map(({ member, error }) => [member, error])) },
      hint: 'Fix the cause and retry the run',
    }
  )

export const taskInvalid = () =>
  svcError('INVALID_VALUE', 'the task must not be blank', { details: { field: 'task', reason: 'must not be blank' } })

export const budgetInvalid = ({ path, message, hint }: WorkflowProblem) => {
  const field = path === '' ? 'budget' : `budget.${path}`
  return svcError('INVALID_VALUE', `${field} ${message}`, {
    details: { field, reason: message },
    ...(hint === undefined ? {} : { hint }),
  })
}

export const teamRunUnknown = (id: string) =>
  svcError('TEAM_RUN_UNKNOWN', `there is no run "${id.slice(0, 100)}" of a team`, {
    details: { field: 'run', value: id.slice(0, 100), reason: 'not found' },
    hint: 'Run `svc teams runs` to see the runs',
  })

export const cursorInvalid = () =>
  svcError('INVALID_VALUE', 'cursor must be the cursor that an earlier page returned', {
    details: { field: 'cursor', reason: 'must be the cursor that an earlier page returned' },
  })

export const delegatedAlready = () =>
  svcError('DELEGATED_ALREADY', 'work that was delegated to you cannot be delegated again', {
    hint: 'Do the work yourself, and answer',
  })

/** The failure of delegated work, for the model that delegated it. */
export const runFailed = (team: string, { id, error }: Run) =>
  svcError('TEAM_FAILED', `the team "${team}" failed: ${error?.message ?? 'unknown error'}`, {
    details: { team, run: id, code: error?.code ?? null },
    hint: 'Do the work yourself, or give the task to another team',
  })
