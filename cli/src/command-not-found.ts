import type { Hook } from '@oclif/core'
import type { SvcError } from '@svc/core'
import { curatedOwner } from './contributed.ts'
import { commandLeftOut, commandUnknown } from './errors.ts'

/** oclif's hook for a command line that names no command: says so in the words of svc, with the command that may be meant. */
export const commandNotFound: Hook<'command_not_found'> = async ({ id, argv = [], config }) => {
  throw notFound(id, [...id.split(':'), ...argv], config.commandIDs)
}

/** Why there is no such command: a plugin that came with svc and has it is not loaded, or the word is unknown. `known`: the ids of all commands. */
export function notFound(id: string, argv: readonly string[], known: readonly string[]): SvcError {
  const owner = curatedOwner(id.includes(':') ? id.split(':') : argv, known)
  return owner === undefined ? commandUnknown(id.split(':'), argv, known) : commandLeftOut(id.split(':')[0]!, owner)
}
