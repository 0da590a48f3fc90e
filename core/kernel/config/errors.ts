import { codeOf, messageOf, type SvcError, svcError } from '../src/errors.ts'
import { didYouMean } from './nearest.ts'

export const configInvalid = (plugin: string | undefined, message: string, where: string | undefined, hint?: string) =>
  svcError('CONFIG_INVALID', message, {
    ...(plugin ? { plugin } : {}),
    ...(where ? { where } : {}),
    hint: hint ?? 'Fix the value, or remove the key to use its default',
  })

export const configUnknownKey = (path: string, known: Iterable<string>, where: string | undefined) =>
  svcError('CONFIG_UNKNOWN_KEY', `${path} is not a known key`, {
    ...(where ? { where } : {}),
    details: { path },
    hint: didYouMean(path.split('.').at(-1)!, known) ?? `Known keys here: ${[...known].sort().join(', ') || 'none'}`,
  })

/** A section without an owner can belong to a plugin that is not installed yet, or not any more. */
export function configUnowned(path: string, known: Iterable<string>, where: string | undefined): SvcError {
  const error = configUnknownKey(path, known, where)
  if (didYouMean(path.split('.').at(-1)!, known) !== undefined) return error
  return Object.assign(error, {
    hint: `If a plugin owns ${path}, install that plugin first (svc plugins install <plugin>), or add it to "plugins"; otherwise remove the key. ${error.hint}`,
  })
}

export const configUnreadable = (message: string, where: string) =>
  svcError('CONFIG_UNREADABLE', message, { where, hint: 'Fix the file' })

export const configForeign = (reason: string, where: string) =>
  svcError('CONFIG_FOREIGN', `svc does not read this configuration, because ${reason}`, {
    where,
    hint: 'If the file is yours, become its owner and remove the write permission of others (chown, chmod go-w). To use the file unchanged, pass it with --config',
  })

export const configNotTrusted = (where: string) =>
  svcError(
    'CONFIG_NOT_TRUSTED',
    'this configuration is code that you have not allowed to run, or that has changed since you allowed it',
    {
      where,
      hint: 'Read the file. Then allow it: run `svc config check` in a terminal, pass the file with --config, or set SVC_TRUST_CONFIG=1',
    }
  )

export const configAmbiguous = (files: readonly string[]) =>
  svcError('CONFIG_AMBIGUOUS', `${files.join(' and ')} are in one folder, but svc reads only one configuration file per folder`, {
    where: files[0]!,
    details: { files },
    hint: `Keep one file: move the settings of the others into it, and remove ${files.slice(1).join(' and ')}`,
  })

/** A note: a file that was named replaces one that svc would find. */
export const configIgnored = (ignored: string, named: string) =>
  svcError('CONFIG_IGNORED', `svc ignores ${ignored}, because it was started with the configuration file ${named}`, {
    where: ignored,
    details: { ignored, named },
    hint: `Move its settings into ${named} or into the svc home, or start svc with --config ${ignored}`,
  })

/** Extends the hint of an unknown name that could belong to a plugin that failed to load. */
export const withLostHint = (error: SvcError, lost: readonly string[]): SvcError =>
  Object.assign(error, { hint: `${error.hint} (or it belongs to ${lost.join(', ')}, which failed to load)` })

export const slotUnknown = (plugin: string, slot: string, known: readonly string[], where: string) =>
  svcError('SLOT_UNKNOWN', `contributes to the slot "${slot}", but no loaded plugin reads this slot`, {
    plugin,
    where,
    details: { slot, known },
    hint: `${didYouMean(slot, known) ?? `Known slots: ${known.join(', ')}`}. If another plugin reads the slot, add that plugin to "plugins". If this plugin reads it, add the slot to its "requires"`,
  })

export const commandsMissing = (plugin: string, where: string) =>
  svcError('COMMAND_MODULE_MISSING', 'declares commands, but the module ./commands that exports their classes does not exist', {
    plugin,
    where,
    hint: 'Build the plugin, or name the module in package.json: "exports": { "./commands": "./commands.js" }',
  })

export const commandTaken = (plugin: string, command: string, by: string, where: string) =>
  svcError('COMMAND_TAKEN', `declares the command "${command}", which ${by} already has`, {
    plugin,
    where,
    details: { command, by },
    hint: 'Rename the command in svc.contributes.commands. Begin it with a word that no other plugin uses, such as the name of yours',
  })

export const reservedNeedsPlugin = (path: string, what: string, where: string | undefined, hint: string) =>
  svcError('CONFIG_UNOWNED', `${path} requests ${what}, but no loaded plugin provides it`, {
    ...(where ? { where } : {}),
    details: { path },
    hint,
  })

export const referenceInvalid = (plugin: string, path: string, where: string | undefined) =>
  svcError('CONFIG_REFERENCE_INVALID', `${path} contains "\${secret:", but no secret name and "}" after it`, {
    plugin,
    ...(where ? { where } : {}),
    details: { path },
    hint: 'Write ${secret:NAME}. NAME is a letter, then up to 63 letters, digits, "_" and "-". To keep the text as it is, write $${secret:',
  })

export const referenceUnprovided = (plugin: string, path: string, where: string | undefined) =>
  svcError('CONFIG_REFERENCE_UNPROVIDED', `${path} refers to a secret, but no loaded plugin provides secrets`, {
    plugin,
    ...(where ? { where } : {}),
    details: { path },
    hint: 'Add "@svc/plugin-secrets" to "plugins"',
  })

export const referenceTooEarly = (plugin: string, path: string, where: string | undefined) =>
  svcError('CONFIG_REFERENCE_TOO_EARLY', `${path} refers to a secret, but the plugin starts before the secrets can be read`, {
    plugin,
    ...(where ? { where } : {}),
    details: { path },
    hint: 'Use a setting of the plugin that names a variable or a file, such as url_env. The secrets are kept in the store, so the store cannot use them',
  })

/** `cause` is the error of the service that keeps the secrets. Its message contains no value. */
export const referenceUnresolved = (
  plugin: string,
  { path, where }: { readonly path: string; readonly where: string | undefined },
  cause: unknown
) =>
  svcError(
    codeOf(cause) ?? 'CONFIG_REFERENCE_UNRESOLVED',
    `the secret that ${path} refers to cannot be read: ${messageOf(cause)}`,
    {
      plugin,
      ...(where ? { where } : {}),
      details: { path },
      cause,
      hint: (cause as SvcError)?.hint ?? 'Run `svc secrets list` to see the secrets',
    }
  )
