import { type SvcError, svcError } from '@svc/core'

export const noCommands = (): SvcError =>
  svcError('CONFIG_INVALID', 'tools.shell.enabled is true, and tools.shell.commands names no program', {
    where: 'tools.shell.commands',
    hint: 'name the programs that may be run, like [git, ls, node]',
  })
/** Whoever chooses the folder would choose the program. */
export const relativeCommand = (command: string): SvcError =>
  svcError('CONFIG_INVALID', `tools.shell.commands names "${command}", which depends on the folder it is run in`, {
    where: 'tools.shell.commands',
    hint: 'name the program alone, or write its whole path',
  })
export const noSandbox = (): SvcError =>
  svcError('CONFIG_INVALID', 'tools.shell.enabled is true, and no loaded plugin runs commands in a sandbox', {
    where: 'tools.shell.enabled',
    hint: 'add "@svc/plugin-sandbox-process" to "plugins"',
  })
export const notAllowed = (command: string, allowed: readonly string[]): SvcError =>
  svcError('COMMAND_NOT_ALLOWED', `"${command.slice(0, 200)}" may not be run; these may: ${allowed.join(', ')}`, {
    details: { allowed: [...allowed] },
  })
export const zeroByte = (): SvcError => svcError('COMMAND_INVALID', 'a word of the command holds a zero byte')
export const timedOut = (ms: number): SvcError =>
  svcError('TIMEOUT', `the command took longer than ${ms / 1000} s and was ended, with all that it had started`)
