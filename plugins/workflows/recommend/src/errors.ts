import { type SvcError, svcError } from '@svc/core'

export const unknownWord = (field: string, value: string, allowed: readonly string[]): SvcError =>
  svcError('INVALID_VALUE', `unknown ${field} "${value.slice(0, 100)}"`, {
    details: { field, value, allowed, reason: 'unknown' },
    hint: `Use one of: ${allowed.join(', ')}`,
  })

export const taskInvalid = (reason: string): SvcError =>
  svcError('INVALID_VALUE', `task_type ${reason}`, {
    details: { field: 'task_type', reason },
    hint: 'Name the task in a few words, such as code_review',
  })
