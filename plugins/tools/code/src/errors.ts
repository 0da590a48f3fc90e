import { type SvcError, svcError } from '@svc/core'

export const configInvalid = (key: string, why: string, hint: string): SvcError =>
  svcError('CONFIG_INVALID', `tools.code.${key} ${why}`, { where: `tools.code.${key}`, hint })

/** Converts a time-out of the sandbox to the code that callers of tools know. */
export const timedOut = ({ message, hint, details }: SvcError): SvcError =>
  svcError('TIMEOUT', message, { details, ...(hint === undefined ? {} : { hint }) })
