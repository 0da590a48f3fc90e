import { type SvcError, svcError } from '@svc/core'

export const configInvalid = (key: string, why: string, hint: string): SvcError =>
  svcError('CONFIG_INVALID', `tools.code.${key} ${why}`, { where: `tools.code.${key}`, hint })

/** The sandbox ended the code for its time: the word that a tool's caller knows for it. */
export const timedOut = ({ message, hint, details }: SvcError): SvcError =>
  svcError('TIMEOUT', message, { details, ...(hint === undefined ? {} : { hint }) })
