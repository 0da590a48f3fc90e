import { type SvcError, svcError } from '@svc/core'

export const noCommands = (): SvcError =>
  svcError('CONFIG_INVALID', 'tools.shell.enabled is true, but tools.shell.commands is empty', {
    where: 'tools.shell.commands',
    hint: 'List the allowed programs, such as [git, ls, node]',
  })
/** A relative path would let the caller choose the program by choosing the folder. */
export const relativeCommand = (command: string): SvcError =>
  svcError('CONFIG_INVALID', `tools.shell.commands contains the relative path "${command}"`, {
    where: 'tools.shell.commands',
    hint: 'Write the name of the program, or its absolute path',
  })
export const noSandbox = (): SvcError =>
  svcError('CONFIG_INVALID', 'tools.shell.enabled is true, but no loaded plugin provides a process sandbox', {
    where: 'tools.shell.enabled',
    hint: 'Add "@svc/plugin-sandbox-process" to "plugins"',
  })
export const notAllowed = (command: string, allowed: readonly string[]): SvcError =>
  svcError('COMMAND_NOT_ALLOWED', `"${command.slice(0, 200)}" is not an allowed program; use one of: ${allowed.join(', ')}`, {
    details: { allowed: [...allowed] },
  })
export const zeroByte = (): SvcError => svcError('COMMAND_INVALID', 'the command contains a zero byte')
export const timedOut = (ms: number): SvcError =>
  svcError('TIMEOUT', `the command exceeded its time limit of ${ms / 1000} s and was terminated with its child processes`)
