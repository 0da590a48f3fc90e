import { svcError } from '@svc/core'

export const tokenRefused = () => svcError('AUTHENTICATION_FAILED', 'the access token is not valid')

export const tokenUnknown = (nameOrId: string) =>
  svcError('TOKEN_UNKNOWN', `there is no token "${nameOrId.startsWith('svc_') ? 'svc_…' : nameOrId.slice(0, 100)}"`, {
    hint: 'Use the name or id of a token; `svc tokens list` shows both',
  })

export const lineInvalid = (message: string, usage: string) =>
  svcError('COMMAND_LINE_INVALID', message, { hint: `Usage: svc ${usage}` })

export const storeNotShared = (kind: string) =>
  svcError('STORE_NOT_SHARED', `the store "${kind}" is not shared with other processes, so no server would accept the token`, {
    hint: 'Configure a persistent store: @svc/plugin-store-sqlite',
  })
