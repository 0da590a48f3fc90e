import { asSvcError, formatError, type SvcError } from '@svc/core'

/** What is wrong, for a program: one record a problem. */
export interface ErrorFacts {
  readonly code: string
  readonly message: string
  readonly plugin?: string
  readonly where?: string
  readonly mend?: string
}

/** The problems in an error that reports several, else the error itself. */
export function problemsOf(error: unknown): [SvcError, ...SvcError[]] {
  const { problems } = Object(error) as { problems?: unknown }
  const [first = error, ...others] = Array.isArray(problems) ? problems : []
  return [asSvcError(first, 'FAILED'), ...others.map(one => asSvcError(one, 'FAILED'))]
}

export const factsOf = (error: unknown): ErrorFacts[] =>
  problemsOf(error).map(({ code, message, plugin, where, mend }) => ({
    code,
    message,
    ...(plugin === undefined ? {} : { plugin }),
    ...(where === undefined ? {} : { where }),
    ...(mend === undefined ? {} : { mend }),
  }))

/** Writes an error as a person reads it to the standard error stream. */
export function printError(error: unknown): void {
  process.stderr.write(`${formatError(error)}\n`)
}
