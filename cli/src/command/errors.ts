import { asSvcError, codeOf, type ErrorParts, formatError, messageOf, type SvcError, svcError } from '@svc/core'
import type { ErrorRecord } from '@svc/core/contracts'
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

/** The exit code of a command line that is wrong. */
export const USAGE = 2

/** The exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130

/**
 * An error of the command line itself: nothing was done, because what was asked for is wrong. Ends the command with 2, under a code of the command's own, as oclif's
 * `this.error(error, { exit: 2 })` does.
 */
export const usageError = (code: string, message: string, parts?: ErrorParts): SvcError =>
  Object.assign(svcError(code, message, parts), { oclif: { exit: USAGE } })

/** The exit code that an error carries for oclif. */
export const exitOf = (error: unknown): number | undefined => (Object(error) as { oclif?: { exit?: number } }).oclif?.exit

/** Whether oclif itself found the command line wrong: its errors have no code. */
export const isParseError = (error: unknown): boolean => exitOf(error) === USAGE && codeOf(error) === undefined

/** What oclif found wrong, in one or more lines. */
export const parseMessage = (error: unknown): string =>
  messageOf(error)
    .replace(/^Parsing (--\S+) \n\t/, '$1: ')
    .replace(/\nSee more help with --help$/, '')

/** An error record of the API as an error for a person, with a hint where the record has facts for one. */
export function errorFromRecord(
  { error, error_code: code, details }: Omit<ErrorRecord, 'success'>,
  { hint = hintOf(code, details), ...parts }: Pick<ErrorParts, 'where' | 'hint' | 'cause'> = {}
): SvcError {
  return svcError(code, error, { ...parts, details: { ...details }, ...(hint === undefined ? {} : { hint }) })
}

const MOST_NAMES = 20

function hintOf(code: string, { available, allowed, scope, retry_after: seconds }: ErrorRecord['details']): string | undefined {
  const names = [available, allowed].find(Array.isArray)?.slice(0, MOST_NAMES)
  if (names && names.length > 0) return `one of: ${names.join(', ')}`
  if (code === 'AUTHENTICATION_FAILED') return 'put an API key or a token into SVC_API_KEY'
  if (code === 'FORBIDDEN' && typeof scope === 'string') return `put a credential with the scope "${scope}" into SVC_API_KEY`
  return typeof seconds === 'number' ? `try again in ${seconds} s` : undefined
}
