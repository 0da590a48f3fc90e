import { svcError } from '@svc/core'

export const tokenRefused = () => svcError('AUTHENTICATION_FAILED', 'the access token is not valid')

/** A caller can pass a token by mistake: no error repeats it. */
const shown = (nameOrId: string) => (nameOrId.startsWith('svc_') ? 'svc_…' : nameOrId.slice(0, 100))

export const tokenUnknown = (nameOrId: string) =>
  svcError('TOKEN_UNKNOWN', `there is no token "${shown(nameOrId)}"`, {
    details: { value: shown(nameOrId) },
    hint: 'Use the name or id of a token; `svc tokens list` shows both',
  })

export const invalid = (field: string, reason: string, hint?: string) =>
  svcError('INVALID_VALUE', `${field} ${reason}`, { details: { field, reason }, ...(hint === undefined ? {} : { hint }) })

export const scopeLacking = (scope: string) =>
  svcError('FORBIDDEN', `a token can have only scopes of its creator, who lacks the scope ${scope}`, {
    details: { scope, reason: 'the scope is missing' },
    hint: 'Leave the scope out, or create the token with a credential that has it',
  })

export const adminNeeded = () =>
  svcError('FORBIDDEN', 'changing access tokens needs the scope admin', {
    details: { scope: 'admin', reason: 'the scope is missing' },
  })
