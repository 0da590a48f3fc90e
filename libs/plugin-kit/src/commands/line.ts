import { svcError } from '@svc/core'

/** A command line that oclif takes and the command does not: `usage` says how it is written. */
export const lineInvalid = (message: string, usage: string) =>
  svcError('COMMAND_LINE_INVALID', message, { hint: `write: svc ${usage}` })
