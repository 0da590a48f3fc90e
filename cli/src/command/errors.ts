import { asSvcError, codeOf, type SvcErrorOptions, formatError, messageOf, redactData, type SvcError, svcError } from '@svc/core'
import type { ErrorRecord } from '@svc/core/contracts'
import { visibleLines } from './text.ts'

/** A problem as JSON. */
export interface ErrorFacts {
  readonly code: string
  readonly message: string
  readonly plugin?: string
  readonly where?: string
  readonly hint?: string
}

/** The problems of an error that reports several, or the error itself. */
export function problemsOf(thrown: unknown): [SvcError, ...SvcError[]] {
  // a cleanup that fails after an error hides the error
  const error: unknown = thrown instanceof SuppressedError ? thrown.suppressed : thrown
  const { problems } = Object(error) as { problems?: unknown }
  const [first = error, ...others] = Array.isArray(problems) ? problems : []
  return [asSvcError(first, 'FAILED'), ...others.map(other => asSvcError(other, 'FAILED'))]
}

export const errorFacts = (error: unknown): ErrorFacts[] =>
  problemsOf(error).map(({ code, message, plugin, where, hint }) =>
    redactData({
      code,
      message,
      ...(plugin === undefined ? {} : { plugin }),
      ...(where === undefined ? {} : { where }),
      ...(hint === undefined ? {} : { hint }),
    })
  )

/** An error for a person. Its text can come from a plugin, so control characters are escaped. */
export const errorPage = (error: unknown): string => visibleLines(formatError(error))

/** Prints an error to the standard error stream. */
export function printError(error: unknown): void {
  process.stderr.write(`${errorPage(error)}\n`)
}

/** Exit code of a wrong command line. */
export const USAGE = 2

/** Exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130

/**
 * An error in the command line: nothing was done. Ends the command with 2 and its own error code, as oclif's `this.error(error,
 * { exit: 2 })` does.
 */
export const usageError = (code: string, message: string, parts?: SvcErrorOptions): SvcError =>
  Object.assign(svcError(code, message, parts), { oclif: { exit: USAGE } })

/** The exit code that an error carries for oclif. */
export const exitOf = (error: unknown): number | undefined => (Object(error) as { oclif?: { exit?: number } }).oclif?.exit

/** Whether oclif found the command line wrong: its errors have no code. */
export const isParseError = (error: unknown): boolean => exitOf(error) === USAGE && codeOf(error) === undefined

/** oclif's message, in one or more lines. */
export const parseMessage = (error: unknown): string =>
  messageOf(error)
    .replace(/^Parsing (--\S+) \n\t/, '$1: ')
    .replace(/\nSee more help with --help$/, '')

/** Converts an error record of the API into an error, with a hint if its details allow one. */
export function errorFromRecord(
  { error, error_code: code, details }: Omit<ErrorRecord, 'success'>,
  { hint = hintOf(code, details), ...parts }: Pick<SvcErrorOptions, 'where' | 'hint' | 'cause'> = {}
): SvcError {
  return svcError(code, error, { ...parts, details: { ...details }, ...(hint === undefined ? {} : { hint }) })
}

const MOST_NAMES = 20

function hintOf(code: string, details: ErrorRecord['details']): string | undefined {
  const { available, allowed, scope, retry_after: seconds, hint } = details
  if (typeof hint === 'string') return hint
  const names = [available, allowed].find(Array.isArray)?.slice(0, MOST_NAMES)
  if (names && names.length > 0) return `one of: ${names.join(', ')}`
  if (code === 'AUTHENTICATION_FAILED')
    return 'Set SVC_API_KEY to an API key or a token, or use --header or SVC_CREDENTIAL_HELPER'
  if (code === 'FORBIDDEN' && typeof scope === 'string') return `Set SVC_API_KEY to a credential with the scope "${scope}"`
  return typeof seconds === 'number' ? `Try again in ${seconds} s` : undefined
}
