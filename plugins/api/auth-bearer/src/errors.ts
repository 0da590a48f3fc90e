import { svcError } from '@svc/core'

export const tokenRefused = () => svcError('AUTHENTICATION_FAILED', 'the access token is not valid')

export const tokenUnknown = (nameOrId: string) =>
  svcError('TOKEN_UNKNOWN', `there is no token "${nameOrId.startsWith('svc_') ? 'svc_…' : nameOrId.slice(0, 100)}"`, {
    hint: 'name it by its name or id; `svc tokens list` shows both',
  })

export const lineInvalid = (message: string, usage: string) =>
  svcError('COMMAND_LINE_INVALID', message, { hint: `write: svc ${usage}` })

export const storeForgets = (kind: string) =>
  svcError('STORE_FORGETS', `the store "${kind}" is not shared between processes, so the server would not know the token`, {
    hint: 'Configure a durable store, such as @svc/plugin-store-sqlite',
  })
