import { type SvcError, svcError } from '@svc/core'

export const unknownWord = (field: string, value: string, allowed: readonly string[]): SvcError =>
  svcError('INVALID_VALUE', `${field} "${value.slice(0, 100)}" is not known`, {
    details: { field, value, allowed, reason: 'unknown' },
    hint: `write one of ${allowed.join(', ')}`,
  })

export const taskInvalid = (reason: string): SvcError =>
  svcError('INVALID_VALUE', `task_type ${reason}`, {
    details: { field: 'task_type', reason },
    hint: 'name the task in a few words, like code_review',
  })
