import { codeOf, messageOf, nearest, svcError } from '@svc/core'
import { definedOf } from '@svc/plugin-kit'
import type { PublicError } from '@svc/core/contracts'

export const scheduleUnknown = (name: string, known: readonly string[]) => {
  const similar = nearest(name, [...known])
  const hint = similar === undefined ? undefined : `Did you mean "${similar}"?`
  return svcError('SCHEDULE_UNKNOWN', `there is no schedule ${JSON.stringify(name.slice(0, 100))}`, {
    details: { value: name.slice(0, 100), ...definedOf({ hint }) },
    hint: hint ?? 'List the schedules: svc schedules list',
  })
}

export const scheduleExists = (name: string) =>
  svcError('SCHEDULE_EXISTS', `there is already a schedule "${name}"`, {
    details: { value: name },
    hint: 'Choose another name, or remove the schedule first',
  })

export const scheduleFixed = (name: string, origin: string) =>
  svcError('SCHEDULE_FIXED', `the schedule "${name}" is defined by ${origin}, so it cannot be removed here`, {
    details: { field: 'name', reason: `it is defined by ${origin}` },
    hint: `Pause it (svc schedules pause ${name}), or remove it from its definition`,
  })

export const tooMany = (most: number) =>
  svcError('SCHEDULE_INVALID', `this principal already has ${most} schedules, the maximum`, {
    details: { field: 'name', reason: `at most ${most} schedules` },
    hint: 'Remove schedules that are not needed any more',
  })

/** The reason why a tick started no job. An error without a code of its own can contain paths. */
export function toPublicError(error: unknown): PublicError {
  const code = codeOf(error) ?? 'INTERNAL_ERROR'
  const isOwn = code !== 'INTERNAL_ERROR'
  return { code, message: isOwn ? messageOf(error).slice(0, 1000) : 'an internal error; see the log of the server', details: {} }
}
