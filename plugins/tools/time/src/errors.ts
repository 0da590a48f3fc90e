import { svcError } from '@svc/core'

export const unknownZone = (zone: string, near: string | undefined) =>
  svcError('TIME_ZONE_UNKNOWN', `there is no time zone "${zone}"${near ? `; did you mean "${near}"?` : ''}`, {
    details: { zone, ...(near ? { nearest: near } : {}) },
    hint: 'write an IANA name like Europe/Berlin, or UTC',
  })

export const invalidTime = (time: string, why: string) =>
  svcError('TIME_INVALID', `"${time}" is no time: ${why}`, {
    details: { time },
    hint: 'write 2026-03-29T14:30, 2026-03-29T14:30:00Z or 2026-03-29T14:30+02:00',
  })

export const zoneMissing = (time: string) =>
  svcError('TIME_ZONE_MISSING', `"${time}" does not say where: give from_zone, or add an offset like Z or +02:00`, {
    details: { time },
  })
