import { type SvcError, svcError } from '@svc/core'

/** One thing wrong with a file. */
export interface Problem {
  /** From 1. */
  readonly line: number
  /** Where in it: `teams.board.formation`; empty for the whole. */
  readonly path: string
  readonly message: string
  readonly hint?: string
}

export const verticalInvalid = (plugin: string, problems: readonly Problem[]): SvcError =>
  svcError('VERTICAL_INVALID', `its vertical is not as it must be\n${problems.map(shown).join('\n')}`, {
    plugin,
    details: { problems },
    hint: 'fix these lines; docs/guides/write-a-vertical.md shows a complete vertical',
  })

const shown = ({ line, path, message, hint }: Problem) =>
  `line ${line}: ${path ? `${path} ` : ''}${message}${hint ? ` (${hint})` : ''}`

export const onlyData = (plugin: string): SvcError =>
  svcError('RUNTIME_NO_CODE', 'a vertical is data: there is nothing to run', {
    plugin,
    hint: 'start its teams and workflows by name',
  })
