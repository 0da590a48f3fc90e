import { asSvcError, formatError, type SvcError } from '@svc/core'
import { visibleLines } from './text.ts'

/** What is wrong, for a program: one record a problem. */
export interface ErrorFacts {
  readonly code: string
  readonly message: string
  readonly plugin?: string
  readonly where?: string
  readonly hint?: string
}

/** The problems in an error that reports several, else the error itself. */
export function problemsOf(error: unknown): [SvcError, ...SvcError[]] {
  const { problems } = Object(error) as { problems?: unknown }
  const [first = error, ...others] = Array.isArray(problems) ? problems : []
  return [asSvcError(first, 'FAILED'), ...others.map(one => asSvcError(one, 'FAILED'))]
}

export const errorFacts = (error: unknown): ErrorFacts[] =>
  problemsOf(error).map(({ code, message, plugin, where, hint }) => ({
    code,
    message,
    ...(plugin === undefined ? {} : { plugin }),
    ...(where === undefined ? {} : { where }),
    ...(hint === undefined ? {} : { hint }),
  }))

/** An error as a person reads it. What it says may be a plugin's: nothing in it reaches a terminal that this would obey. */
export const errorPage = (error: unknown): string => visibleLines(formatError(error))

/** Writes an error as a person reads it to the standard error stream. */
export function printError(error: unknown): void {
  process.stderr.write(`${errorPage(error)}\n`)
}
