import { codeOf, StartFailed, type SvcError } from '@svc/core'
import { notFound } from './command-not-found.ts'
import type { CommandSource } from './contributed.ts'
import { commandLineInvalid, isUsage } from './errors.ts'
import { exitOf, isParseError, parseMessage, printError, USAGE } from './command/errors.ts'
import { findSettings } from './settings.ts'
import { SUMMARIES } from './summaries.ts'

/** Prints why a command line ended. Exit code 2 is for the command line itself; what oclif throws carries its code, an ordinary failure does not. */
export function endOf(error: unknown, argv: readonly string[], sources: readonly CommandSource[]): number {
  const exit = exitOf(error)
  if (codeOf(error) === 'EEXIT') return exit ?? 0
  const known = [...Object.keys(SUMMARIES), ...sources.flatMap(one => one.ids)]
  printError(isParseError(error) || isBare(error) ? lineError(parseMessage(error), argv, known) : error)
  return exit ?? (isUsage(codeOf(error)) ? USAGE : 1)
}

/** What oclif found wrong in the process of an isolated plugin: it knows no other commands there, and gives no hint. */
const isBare = (error: unknown) =>
  codeOf(error) === 'COMMAND_LINE_INVALID' && (Object(error) as { hint?: string }).hint === undefined

/** oclif's words for what is wrong with a command line; of help for what is no command it calls no hook. */
function lineError(message: string, argv: readonly string[], known: readonly string[]): SvcError {
  const [, id] = /^Command (\S+) not found\.$/.exec(message) ?? []
  return id === undefined ? commandLineInvalid(message, argv, known) : notFound(id, argv, known)
}

/** Whether a file that the command line names can be read. Prints the problems if not. */
export async function isReadable(file: string): Promise<boolean> {
  const { problems } = await findSettings({ config: file })
  if (problems.length > 0) printError(new StartFailed(problems))
  return problems.length === 0
}
