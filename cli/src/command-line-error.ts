import { codeOf, type SvcError } from '@svc/core'
import { usageWords } from './command/usage-words.ts'
import type { CommandSource } from './contributed.ts'
import { commandLineInvalid, commandUnknown, isUsage } from './errors.ts'
import { printError } from './report-error.ts'
import { SUMMARIES } from './summaries.ts'

const USAGE = 2

/** Prints why a command line ended. Exit code 2 is for the command line itself; what oclif throws carries its code, an ordinary failure does not. */
export function endOf(error: unknown, argv: readonly string[], sources: readonly CommandSource[]): number {
  const exit = (error as { oclif?: { exit?: number } }).oclif?.exit
  if (codeOf(error) === 'EEXIT') return exit ?? 0
  const known = [...Object.keys(SUMMARIES), ...sources.flatMap(one => one.ids)]
  printError(exit === USAGE || isBare(error) ? usageError(usageWords(error), argv, known) : error)
  return exit ?? (isUsage(codeOf(error)) ? USAGE : 1)
}

/** What oclif found wrong in the process of an isolated plugin: it knows no other commands there, and gives no hint. */
const isBare = (error: unknown) =>
  codeOf(error) === 'COMMAND_LINE_INVALID' && (Object(error) as { mend?: string }).mend === undefined

/** oclif's words for what is wrong with a command line; of help for what is no command it calls no hook. */
function usageError(message: string, argv: readonly string[], known: readonly string[]): SvcError {
  const [, id] = /^Command (\S+) not found\.$/.exec(message) ?? []
  return id === undefined ? commandLineInvalid(message, argv, known) : commandUnknown(id.split(':'), argv, known)
}
