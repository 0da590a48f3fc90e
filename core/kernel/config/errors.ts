import { type SvcError, svcError } from '../src/svc-error.ts'
import { didYouMean } from './nearest.ts'

export const configInvalid = (plugin: string | undefined, message: string, where: string | undefined, hint?: string) =>
  svcError('CONFIG_INVALID', message, {
    ...(plugin ? { plugin } : {}),
    ...(where ? { where } : {}),
    hint: hint ?? 'fix the value, or take the key out to get its default',
  })

export const configUnknownKey = (path: string, known: Iterable<string>, where: string | undefined) =>
  svcError('CONFIG_UNKNOWN_KEY', `${path} is not a known key`, {
    ...(where ? { where } : {}),
    details: { path },
    hint: didYouMean(path.split('.').at(-1)!, known) ?? `known here: ${[...known].sort().join(', ') || 'nothing'}`,
  })

export const configUnreadable = (message: string, where: string) =>
  svcError('CONFIG_UNREADABLE', message, { where, hint: 'fix the file; svc starts with none rather than a broken one' })

export const configForeign = (reason: string, where: string) =>
  svcError('CONFIG_FOREIGN', `this configuration is not read, because ${reason}`, {
    where,
    hint: 'If it is yours, make yourself its owner and take the write permission from others (chown, chmod go-w). To use it as it is, name it with --config',
  })

export const configNotTrusted = (where: string) =>
  svcError('CONFIG_NOT_TRUSTED', 'this configuration is code, and you have not allowed it to run (or it has changed since)', {
    where,
    hint: 'Read it, then run `svc config check` in a terminal to be asked, name the file with --config, or set SVC_TRUST_CONFIG=1',
  })

export const configAmbiguous = (files: readonly string[]) =>
  svcError('CONFIG_AMBIGUOUS', `${files.join(' and ')} lie in one folder, and only one of them can count`, {
    where: files[0]!,
    details: { files },
    hint: `keep one: move into it what the others say, and remove ${files.slice(1).join(' and ')}`,
  })

/** An unknown name that may well be known to what could not be loaded. */
export const doubted = (error: SvcError, lost: readonly string[]): SvcError =>
  Object.assign(error, { hint: `${error.hint} (or it belongs to ${lost.join(', ')}, which could not be loaded)` })

export const slotUnknown = (plugin: string, slot: string, known: readonly string[], where: string) =>
  svcError('SLOT_UNKNOWN', `declares that it adds to "${slot}", a slot that no loaded plugin knows`, {
    plugin,
    where,
    details: { slot, known },
    hint: `${didYouMean(slot, known) ?? `known slots: ${known.join(', ')}`}; a slot of another plugin is known once that one is in "plugins", or once this one requires it`,
  })

export const commandsMissing = (plugin: string, where: string) =>
  svcError('COMMAND_MODULE_MISSING', 'declares commands, but the module ./commands that exports their classes is not there', {
    plugin,
    where,
    hint: 'Build the plugin, or name the module in package.json: "exports": { "./commands": "./commands.js" }',
  })

export const commandTaken = (plugin: string, command: string, by: string, where: string) =>
  svcError('COMMAND_TAKEN', `has the command "${command}", a name that ${by} has already`, {
    plugin,
    where,
    details: { command, by },
    hint: `rename it in svc.contributes.commands: by habit a plugin's commands begin with a word of its own`,
  })

export const reservedAsked = (path: string, what: string, where: string | undefined, hint: string) =>
  svcError('CONFIG_UNOWNED', `${path} asks for ${what}, which no loaded plugin does`, {
    ...(where ? { where } : {}),
    details: { path },
    hint,
  })
