import { type SvcError, svcError } from '@svc/core'

/** A problem in a file. */
export interface VerticalProblem {
  /** Line, counted from 1. */
  readonly line: number
  /** Path in the file, such as `teams.board.formation`; empty for the whole file. */
  readonly path: string
  readonly message: string
  readonly hint?: string
}

export const verticalInvalid = (plugin: string, problems: readonly VerticalProblem[]): SvcError =>
  svcError('VERTICAL_INVALID', `the vertical is invalid\n${problems.map(shown).join('\n')}`, {
    plugin,
    details: { problems },
    hint: 'Fix these lines; see docs/guides/write-a-vertical.md for a complete vertical',
  })

const shown = ({ line, path, message, hint }: VerticalProblem) =>
  `line ${line}: ${path ? `${path} ` : ''}${message}${hint ? ` (${hint})` : ''}`

export const onlyData = (plugin: string): SvcError =>
  svcError('RUNTIME_NO_CODE', 'a vertical is data and cannot be run', {
    plugin,
    hint: 'Start its teams and workflows by name',
  })
