import type { Hook } from '@oclif/core'
import { commandUnknown } from './errors.ts'

/** oclif's hook for a command line that names no command: says so in the words of svc, with the command that may be meant. */
export const commandNotFound: Hook<'command_not_found'> = async ({ id, argv = [], config }) => {
  throw commandUnknown(id.split(':'), [...id.split(':'), ...argv], config.commandIDs)
}
