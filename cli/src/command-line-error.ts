import { codeOf, StartFailed, type SvcError } from '@svc/core'
import { notFound } from './command-not-found.ts'
import type { CommandSource } from './contributed.ts'
import { commandLineInvalid, isUsage } from './errors.ts'
import { exitOf, isParseError, parseMessage, printError, USAGE } from './command/errors.ts'
import { findSettings } from './settings.ts'
import { SUMMARIES } from './summaries.ts'

/** Prints why a command ended, and returns its exit code: 2 for a wrong command line, the code that oclif gives, or 1. */
export function endOf(error: unknown, argv: readonly string[], sources: readonly CommandSource[]): number {
  const exit = exitOf(error)
  if (codeOf(error) === 'EEXIT') return exit ?? 0
  const known = [...Object.keys(SUMMARIES), ...sources.flatMap(source => source.ids)]
  printError(isParseError(error) || isBare(error) ? lineError(parseMessage(error), argv, known) : error)
  return exit ?? (isUsage(codeOf(error)) ? USAGE : 1)
}

/** oclif's error in the process of an isolated plugin: it knows no other commands there and gives no hint. */
const isBare = (error: unknown) =>
  codeOf(error) === 'COMMAND_LINE_INVALID' && (Object(error) as { hint?: string }).hint === undefined

/** Adds a hint to oclif's message. oclif calls no hook for the help of an unknown command. */
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
