import { codeOf, type ErrorParts, messageOf, type SvcError, svcError } from '@svc/core'

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
