import { messageOf, svcError } from '@svc/core'
import { nameHint } from '@svc/plugin-kit'

const SHOWN = 200

export const serverNone = () =>
  svcError('SERVER_NONE', 'no server is running', { hint: 'Start one with `svc serve`, or name one with --url or --port' })

export const endpointMissing = (path: string, client: string, url: string) =>
  svcError('ENDPOINT_MISSING', `the server does not serve ${path}, which ${client} needs`, {
    where: url,
    hint: 'Enable the plugin of this API on the server, or choose another client',
  })

export const modelUnknown = (model: string, known: readonly string[], url: string) =>
  svcError('MODEL_UNKNOWN', `the server has no model "${model.slice(0, SHOWN)}"`, {
    where: url,
    details: { model: model.slice(0, SHOWN), available: [...known] },
    hint: nameHint(model, known, 'Configure a provider with models on the server'),
  })

export const modelRequired = (url: string) =>
  svcError('MODEL_REQUIRED', 'no provider of the server lists a model', { where: url, hint: 'Choose a model with --model' })

/** Problems of the files of a client. */
export const fileInvalid = (where: string, reason: string, hint = 'Correct the file, then run the command again') =>
  svcError('CLIENT_FILE_INVALID', reason, { where, hint })

export const fileUnreadable = (where: string, cause: unknown) =>
  svcError('CLIENT_FILE_INVALID', `the file cannot be read: ${messageOf(cause)}`, {
    where,
    cause,
    hint: 'Make it a readable text file, then run the command again',
  })

/** `keys`: settings with other values, which can be secret and are not shown. */
export const settingsConflict = (where: string, client: string, keys: readonly string[]) =>
  svcError('CLIENT_SETTINGS_CONFLICT', `the file has other values for: ${keys.join(', ')}`, {
    where,
    details: { keys: [...keys] },
    hint: `Remove them from the file, then run the command again. \`svc connect ${client}\` shows the new values`,
  })

export const fileChanged = (where: string) =>
  svcError('CLIENT_FILE_CHANGED', 'another program has changed the file meanwhile', {
    where,
    hint: 'Close the client, then run the command again',
  })
