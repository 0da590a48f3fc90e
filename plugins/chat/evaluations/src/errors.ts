import { svcError } from '@svc/core'
import type { EvaluationProblem } from './cases.ts'

/** Formats a problem as one line: its place in the file, the path of the member, and the message. */
export const problemText = ({ path, message, line, column }: EvaluationProblem): string =>
  [line === undefined ? '' : `line ${line}${column === undefined ? '' : `:${column}`}`, path, message].filter(Boolean).join(' ')

const MOST_SHOWN = 20

/** The request or the file has problems. */
export const requestInvalid = (problems: readonly EvaluationProblem[]) =>
  svcError('INVALID_VALUE', `the evaluation is not valid: ${problemText(problems[0]!)}`, {
    details: {
      field: problems[0]!.path || 'cases',
      reason: problems[0]!.message,
      problems: problems.slice(0, MOST_SHOWN).map(problem => ({ ...problem })),
    },
    ...(problems[0]!.hint === undefined ? {} : { hint: problems[0]!.hint }),
  })

/** The text is the same for an unknown evaluation and for one of another principal. */
export const evaluationUnknown = (id: string) =>
  svcError('INVALID_VALUE', `there is no evaluation "${id.slice(0, 100)}"`, {
    details: { field: 'id', value: id.slice(0, 100), reason: 'not found' },
    hint: 'Results are kept as long as the job: see jobs.keep_completed_days',
  })

export const profileUnknown = (name: string, allowed: readonly string[]) =>
  svcError('INVALID_VALUE', `there is no profile "${name.slice(0, 100)}"`, {
    details: { field: 'profile', value: name.slice(0, 100), reason: 'unknown profile', allowed: allowed.slice(0, 50) },
    hint: `Use one of: ${allowed.slice(0, 20).join(', ')}`,
  })

export const jobsUnavailable = () =>
  svcError('UNAVAILABLE', 'background jobs are off, so the server runs no evaluations', {
    hint: 'Load the plugin jobs, or use `svc eval` with --local',
  })

/** The stored turn was deleted after the evaluation began. */
export const turnGone = (name: string) =>
  svcError('TURN_UNKNOWN', `the stored turn ${name} does not exist any more`, { details: { turnId: name } })

/** A judge did not answer with a verdict. */
export const verdictInvalid = (reason: string) =>
  svcError('ANSWER_INVALID', `the judge returned no valid verdict: ${reason}`, {
    hint: 'Use a judge whose model supports response schemas',
  })
