import { svcError } from '@svc/core'

const shown = (text: unknown) => (typeof text === 'string' ? JSON.stringify(text.slice(0, 64)) : `of type ${typeof text}`)

export const settingsUnknown = (name: unknown) =>
  svcError('SETTINGS_UNKNOWN', `there are no settings ${shown(name)}`, {
    hint: 'Use the name with which the plugin adds them to the slot setting_definitions',
  })

/** A problem of a value, in the terms of its author. */
export interface SettingProblem {
  readonly path: string
  readonly message: string
}

export const settingsInvalid = (problems: readonly SettingProblem[]) =>
  svcError('SETTINGS_INVALID', problems.map(({ path, message }) => `${path} ${message}`).join('\n'), {
    details: { problems },
    hint: 'Fix the listed values; nothing was stored',
  })

export const settingsTooLarge = (bytes: number, limit: number) =>
  svcError('SETTINGS_TOO_LARGE', `the values have ${bytes} bytes of JSON; the limit is ${limit}`, {
    details: { bytes, limit },
    hint: 'Shorten a value or remove others, or raise settings.max_bytes',
  })

export const settingsConflict = (expected: number, actual: number) =>
  svcError('SETTINGS_CONFLICT', `the values have the version ${actual}, not ${expected}`, {
    details: { expected, actual },
    hint: 'Read the values again and repeat the change',
  })

export const settingsForbidden = (what: string) =>
  svcError('FORBIDDEN', `the caller cannot ${what}`, {
    details: { scope: 'admin', reason: 'the values belong to others' },
    hint: 'Use a principal with the scope admin',
  })

export const schemaBroken = (name: string, reason: string) =>
  svcError('SETTINGS_SCHEMA_INVALID', `the schema of the settings "${name}" is not valid: ${reason}`, {
    hint: 'Fix the plugin: the schema must be a JSON Schema of the type object with "properties"',
  })
