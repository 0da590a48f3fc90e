import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { pluginKit } from '@svc/testing'
import { dueTime } from '../hours.js'
import samples from './samples.js'

for (const one of await pluginKit(new URL('..', import.meta.url), samples)) test(one.title, one.run)

const HOUR = 3_600_000
const BERLIN = {
  timezone: 'Europe/Berlin',
  days: ['mon', 'tue', 'wed', 'thu', 'fri'],
  from: '09:00',
  to: '17:00',
  holidays: ['2026-04-03', '2026-04-06'],
}

/** @type {(since: string, hours: number, due: string | undefined, calendar?: import('../hours.js').Hours) => void} */
const expectDue = (since, hours, due, calendar = BERLIN) => {
  const time = dueTime(Date.parse(since), hours * HOUR, calendar)
  equal(time === undefined ? undefined : new Date(time).toISOString(), due && new Date(due).toISOString())
}

test('continues on the next business day', () => {
  expectDue('2026-03-03T16:00:00+01:00', 2, '2026-03-04T10:00:00+01:00')
  expectDue('2026-03-06T16:30:00+01:00', 1, '2026-03-09T09:30:00+01:00')
})

test('begins at the next opening time', () => {
  expectDue('2026-03-07T12:00:00+01:00', 1, '2026-03-09T10:00:00+01:00')
  expectDue('2026-03-09T03:00:00+01:00', 8, '2026-03-09T17:00:00+01:00')
  expectDue('2026-03-09T23:30:00+01:00', 1, '2026-03-10T10:00:00+01:00')
})

test('skips holidays', () => expectDue('2026-04-02T16:00:00+02:00', 2, '2026-04-07T10:00:00+02:00'))

test('follows the change to summer time', () => {
  expectDue('2026-03-27T16:00:00+01:00', 2, '2026-03-30T10:00:00+02:00')
  // The clocks skip 02:00 to 03:00: the night has two hours.
  const night = { ...BERLIN, days: ['sun'], from: '00:00', to: '03:00' }
  expectDue('2026-03-28T12:00:00+01:00', 2, '2026-03-29T03:00:00+02:00', night)
})

test('knows zones that are not whole hours from UTC', () =>
  expectDue('2026-03-03T23:00:00+05:45', 1, '2026-03-04T10:00:00+05:45', { ...BERLIN, timezone: 'Asia/Kathmandu' }))

test('returns nothing when the hours leave no time', () =>
  expectDue('2026-03-03T16:00:00Z', 1, undefined, { ...BERLIN, from: '12:00', to: '12:00' }))
