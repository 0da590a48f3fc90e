import { type SvcError, svcError } from '@svc/core'

export const configInvalid = (key: string, why: string, mend: string): SvcError =>
  svcError('CONFIG_INVALID', `tools.code.${key} ${why}`, { where: `tools.code.${key}`, mend })

/** The sandbox ended the code for its time: the word that a tool's caller knows for it. */
export const timedOut = ({ message, mend, details }: SvcError): SvcError =>
  svcError('TIMEOUT', message, { details, ...(mend === undefined ? {} : { mend }) })
