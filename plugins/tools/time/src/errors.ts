import { svcError } from '@svc/core'

export const unknownZone = (zone: string, near: string | undefined) =>
  svcError('TIME_ZONE_UNKNOWN', `unknown time zone "${zone}"${near ? `; did you mean "${near}"?` : ''}`, {
    details: { zone, ...(near ? { nearest: near } : {}) },
    hint: 'Write an IANA name such as Europe/Berlin, or UTC',
  })

export const invalidTime = (time: string, why: string) =>
  svcError('TIME_INVALID', `"${time}" is not a valid time: ${why}`, {
    details: { time },
    hint: 'Write 2026-03-29T14:30, 2026-03-29T14:30:00Z or 2026-03-29T14:30+02:00',
  })

export const zoneMissing = (time: string) =>
  svcError('TIME_ZONE_MISSING', `"${time}" has no time zone; set from_zone, or add an offset such as Z or +02:00`, {
    details: { time },
  })
